"""Write docs/explanation/one-run-is-not-enough.md from the collected runs of docs/results:

python -m benchmarks.one_run_page
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages import DOCS, render
from benchmarks.results_tables import find_table
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


def describe_single(main: dict[str, Any], cv: dict[str, Any]) -> dict[str, Any]:
    """Return a run that stands alone on the headline page, and what its replicates scored later."""
    headline = find_table(main, "Test macro AUC by init")["values"]
    alone = _find_arm(headline, "conformer, seed-free", "golden")
    seeded = _find_arm(headline, "conformer", "mixed + weights")
    folds = find_table(cv, "Test macro AUC by fold")["values"]
    later = [
        {
            "fold": fold,
            **{
                name: _find_arm(folds, f"conformer, test fold {fold}", f"conformer {name}")
                for name in ("golden", "seeded")
            },
        }
        for fold in (10, 9, 8)
    ]
    tests = find_table(cv, "Secondary: fold by fold")["rows"]
    orders = [row for row in tests if row[0].startswith("conformer")]
    significant = sum(float(row[4]) < 0.05 for row in orders)
    return {"alone": alone, "seeded": seeded, "later": later, "significant": significant}


def _find_arm(values: Sequence[dict[str, Any]], block: str, arm: str) -> dict[str, Any]:
    """Return n, mean and SD of one arm of a block."""
    (found,) = [one for one in values if (one["block"], one["arm"]) == (block, arm)]
    scores = list(found["scores"].values())
    mean, sd = mean_and_sd(scores)
    return {"n": len(scores), "mean": mean, "sd": sd}


def describe_churn(collected: dict[str, Any]) -> dict[str, Any]:
    """Return the test records whose answer is not the same in all runs of a start."""
    table = find_table(collected, "Test records whose answer")
    return {"rows": table["values"], "runs": table["rows"][0][1]}


def make_page(folder: Path = COLLECTED) -> str:
    """Return the text of the page."""
    return render(
        "one-run-is-not-enough.md",
        basis=describe_basis(read_collected("basis", folder)),
        single=describe_single(read_collected("main", folder), read_collected("cv", folder)),
        churn=describe_churn(read_collected("medmnist", folder)),
    )


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
