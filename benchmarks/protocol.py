"""How many replicates the comparisons of starts need, by simulation on the spread already seen:

    python -m benchmarks.protocol [--trials N] [--page-only]

writes benchmarks/results/protocol.json, and docs/results/protocol.md from it. The page was written
before the first run of the study `factorial`; it says what is tested, how, and when to stop.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.measure import RESULTS, write_results
from benchmarks.pages import DOCS, read_records, render
from benchmarks.starts import plan as starts
from benchmarks.starts.analysis import find_power
from benchmarks.starts.training import BATCH, WARMUP_STEPS
from seedless.numerics.counter_random import draw_uniform
from seedless.numerics.normal_quantile import normal_quantile
from seedless.studies.engine import equivalence_tables
from seedless.studies.engine.table import mean_and_sd
from seedless.studies.published import factorial

COLLECTED = DOCS / "results" / "collected"
PAGE = DOCS / "results" / "protocol.md"
COMMAND = "python -m benchmarks.protocol"
TRIALS = 4000
SDS = (0.020, 0.025, 0.030)  # of the scores of an arm over its replicates
COUNTS = (10, 20, 25, 30, 40, 50, 60, 80)  # replicates of an arm
MARGINS = (0.010, 0.0125, 0.015, 0.0175, 0.020, 0.025, 0.030, 0.040)
RATIOS = (1.0, 1.5, 2.0)  # of the SDs of two arms
DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.10)
WANTED = 0.8
STEP_ROW = "ours graph fp32"  # in the record of the steps of the conformer
# Of the trial that led to the comparison of default starts, on BreastMNIST: dct minus own.
FIRST_TRIAL = {"networks": 9, "sd_own": 0.039}
NETWORK_SDS = (0.01, 0.02, 0.03, 0.04)  # of the differences of two starts over networks
NETWORK_MARGINS = (starts.MARGIN, 0.02, 0.03)
ALPHA = equivalence_tables.ALPHA
HOLM_ALPHA = ALPHA / 2  # of the first of two tests under Holm's correction: the hardest case

Float64 = NDArray[np.float64]


def draw_scores(name: str, trials: int, count: int, sd: float) -> Float64:
    """Return normal scores of mean 0: (trials, count), the same on every machine."""
    uniform = draw_uniform(0, f"{name} {trials} x {count}", trials * count)
    return sd * normal_quantile(uniform).reshape(trials, count)


def test_equality(a: Float64, b: Float64, margin: float) -> Float64:
    """Return the p of the paired two one-sided tests of each trial: (trials,)."""
    differences = a - b
    count = differences.shape[1]
    error = differences.std(axis=1, ddof=1) / math.sqrt(count)
    above = stats.t.sf((differences.mean(axis=1) + margin) / error, count - 1)
    below = stats.t.cdf((differences.mean(axis=1) - margin) / error, count - 1)
    larger: Float64 = np.maximum(above, below)
    return larger


def test_difference(a: Float64, b: Float64) -> Float64:
    """Return the two-sided p of Welch's test of each trial: (trials,)."""
    p: Float64 = stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue
    return p


def test_spread(a: Float64, b: Float64) -> Float64:
    """Return the p of the test of Brown and Forsythe of each trial: (trials,)."""
    distances = [np.abs(one - np.median(one, axis=1, keepdims=True)) for one in (a, b)]
    p: Float64 = stats.f_oneway(*distances, axis=1).pvalue
    return p


def share_below(p_values: Float64, alpha: float) -> float:
    """Return the share of trials that are significant, to three digits."""
    return round(float((p_values < alpha).mean()), 3)


def simulate(trials: int) -> dict[str, Any]:
    """Return the power of each primary test by SD and number of replicates."""
    equality, difference, spread = [], [], []
    for count in COUNTS:
        a, b = (draw_scores(name, trials, count, 1.0) for name in ("a", "b"))
        for sd in SDS:
            for margin in MARGINS:
                p = test_equality(sd * a, sd * b, margin)
                row = {"n": count, "sd": sd, "margin": margin}
                row |= {"power": share_below(p, ALPHA), "holm": share_below(p, HOLM_ALPHA)}
                # Where the true difference is the margin itself, "equal" is an error.
                false = test_equality(sd * a + margin, sd * b, margin)
                equality.append({**row, "false": share_below(false, ALPHA)})
            for gap in DIFFERENCES:
                p = test_difference(sd * a + gap, sd * b)
                row = {"n": count, "sd": sd, "difference": gap}
                difference.append({**row, "power": share_below(p, ALPHA)})
        for ratio in RATIOS:
            p = test_spread(ratio * a, b)
            spread.append({"n": count, "ratio": ratio, "power": share_below(p, ALPHA)})
    return {"trials": trials, "equality": equality, "difference": difference, "spread": spread}


def list_spreads(folder: Path = COLLECTED) -> list[dict[str, Any]]:
    """Return the SD of every arm of at least five replicates that was collected on real ECGs."""
    rows = []
    for slug in ("basis", "golden", "order"):
        found = json.loads((folder / f"{slug}.json").read_text(encoding="utf-8"))
        for table in found["tables"]:
            for value in table["values"]:
                scores = list((value.get("scores") or {}).values())
                if len(scores) >= 5:
                    name = " / ".join(part for part in (value["block"], value["arm"]) if part)
                    sd = round(mean_and_sd(scores)[1], 4)
                    rows.append({"study": slug, "arm": name, "n": len(scores), "sd": sd})
    return rows


def find_correlation(folder: Path = COLLECTED) -> float:
    """Return how the scores of two starts correlate over seeds that they share: mixed, kaiming."""
    found = json.loads((folder / "basis.json").read_text(encoding="utf-8"))
    scores = {value["arm"]: value["scores"] for value in found["tables"][0]["values"]}
    shared = [name for name in scores["mixed"] if name in scores["kaiming"]]
    pairs = np.array([[scores[arm][name] for name in shared] for arm in ("mixed", "kaiming")])
    return round(float(np.corrcoef(pairs)[0, 1]), 2)


def find_smallest_margin(rows: Sequence[dict[str, Any]], sd: float, n: int, key: str) -> str:
    """Return the smallest margin whose power is at least the wanted one, or that there is none."""
    enough = [r["margin"] for r in rows if (r["sd"], r["n"]) == (sd, n) and r[key] >= WANTED]
    return f"{min(enough):g}" if enough else "none"


def write_page(folder: Path = RESULTS, out: Path = PAGE) -> None:
    """Write the page from the record."""
    out.write_text(make_page(folder), encoding="utf-8")


def make_page(folder: Path = RESULTS) -> str:
    """Return the text of the page."""
    records = read_records(folder)
    record = records["protocol"]
    found = record["results"]
    rows = {name: found["simulated"][name] for name in ("equality", "difference", "spread")}
    # A run has 11 or 12 steps an epoch: 1,408 to 1,476 labelled records in batches of 128.
    seconds = (
        factorial.TRAIN["epochs"] * 11.5 * find_step_ms(records["bench-gpu"]["results"]) / 1000
    )
    return render(
        "protocol.md",
        record=record,
        found=found,
        rows=rows,
        counts=COUNTS,
        sds=SDS,
        ratios=RATIOS,
        differences=DIFFERENCES,
        study=factorial,
        alpha=ALPHA,
        smallest_margin=lambda sd, n, key: find_smallest_margin(rows["equality"], sd, n, key),
        seconds=seconds,
        **describe_default_start(),
    )


def describe_default_start() -> dict[str, Any]:
    """Return what the page says of the comparison that chooses the default start."""

    def find_both(sd: float, margin: float) -> str:
        n = len(starts.NETWORKS)
        levels = (starts.ALPHA, starts.ALPHA / len(starts.CANDIDATES))
        plain, corrected = (find_power(sd, n, margin, level) for level in levels)
        return f"{plain:.2f} ({corrected:.2f})"

    return {
        "starts": starts,
        "epochs": starts.EPOCHS,
        "runs": len(starts.list_trainings()),
        "warmup": WARMUP_STEPS,
        "batch": BATCH,
        "seen": FIRST_TRIAL,
        "power_sds": NETWORK_SDS,
        "power_margins": NETWORK_MARGINS,
        "find_power": find_both,
    }


def find_step_ms(results: dict[str, Any]) -> float:
    """Return the milliseconds of a recorded step of the conformer as a CUDA graph, in fp32."""
    for row in results["rows"]:
        if row["name"] == STEP_ROW:
            return float(row["ms_per_step"])
    raise KeyError(STEP_ROW)


def main() -> None:
    """Simulate, write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--page-only", action="store_true")
    arguments = parser.parse_args()
    if not arguments.page_only:
        results = {
            "seen": list_spreads(),
            "correlation": find_correlation(),
            "simulated": simulate(arguments.trials),
        }
        print(write_results("protocol", COMMAND, results))
    write_page()
    print(PAGE)


if __name__ == "__main__":
    main()
