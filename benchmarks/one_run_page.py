"""Write docs/explanation/one-run-is-not-enough.md from the collected runs of docs/results:

python -m benchmarks.one_run_page
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.pages import DOCS, render
from benchmarks.results_answers import find_table
from seedless.studies.engine.table import mean_and_sd

COLLECTED = DOCS / "results" / "collected"
PAGE = DOCS / "explanation" / "one-run-is-not-enough.md"
RANDOM = "kaiming"  # differs from the others in residual scale and head too


def read_collected(name: str, folder: Path = COLLECTED) -> dict[str, Any]:
    """Return what was collected of a study."""
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def describe_basis(collected: dict[str, Any]) -> dict[str, Any]:
    """Return each structured start's spread over orders, and what single runs would have said."""
    arms = []
    for value in find_table(collected, "Test macro AUC by basis")["values"]:
        if value["arm"] == RANDOM:
            continue
        scores = list(value["scores"].values())
        mean, sd = mean_and_sd(scores)
        row = {"name": value["arm"], "n": len(scores), "mean": mean, "sd": sd, "scores": scores}
        arms.append({**row, "low": min(scores), "high": max(scores)})
    best, worst = max(arms, key=lambda arm: arm["mean"]), min(arms, key=lambda arm: arm["mean"])
    widest = max(arms, key=lambda arm: arm["high"] - arm["low"])
    return {
        "arms": arms,
        "n": min(arm["n"] for arm in arms),
        "best": best["name"],
        "worst": worst["name"],
        "gap": best["mean"] - worst["mean"],
        "widest": {"name": widest["name"], "range": widest["high"] - widest["low"]},
        "opposite": sum(one < other for one in best["scores"] for other in worst["scores"]),
        "pairs": len(best["scores"]) * len(worst["scores"]),
        "optimism": sum(arm["high"] - arm["mean"] for arm in arms) / len(arms),
        "friedman": find_table(collected, "All bases at once")["rows"][0][2],
    }


def describe_golden(collected: dict[str, Any]) -> dict[str, int]:
    """Return how many runs the seed-free arm has, and how many the seeded one."""
    values = find_table(collected, "Golden order")["values"]
    counts = {value["arm"]: len(value["scores"]) for value in values}
    return {"n": counts["mixed"], "other": counts["kaiming"]}


def describe_churn(collected: dict[str, Any]) -> dict[str, Any]:
    """Return the test records whose answer is not the same in all runs of a start."""
    table = find_table(collected, "Test records whose answer")
    return {"rows": table["values"], "runs": table["rows"][0][1]}


def make_page(folder: Path = COLLECTED) -> str:
    """Return the text of the page."""
    return render(
        "one-run-is-not-enough.md",
        basis=describe_basis(read_collected("basis", folder)),
        golden=describe_golden(read_collected("golden", folder)),
        churn=describe_churn(read_collected("medmnist", folder)),
    )


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
