"""How often 95 % intervals of the AUC of a class contain the true value, by simulation:

    python -m benchmarks.interval_coverage

writes benchmarks/results/interval-coverage.json. Scores of negatives are standard normal, those of
positives normal with a mean that gives the true AUC and an SD of half, once or twice that of the
negatives. All numbers come from the counter, so the record is the same on every machine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.measure import write_results
from seedless.evaluate.auc import area_under_curve
from seedless.evaluate.bootstrap import take_class_percentiles
from seedless.evaluate.intervals import Interval, area_interval, delong_interval, pair_interval
from seedless.numerics.counter_random import draw_uniform

RECORDS = 300
TRIALS = 400
RESAMPLES = 400
POSITIVES = (2, 3, 5, 10, 20, 30, 100)
AREAS = (0.6, 0.75, 0.92, 0.98)
RATIOS = (0.5, 1.0, 2.0)  # SD of the positives' scores over that of the negatives'

Float64 = NDArray[np.float64]
Method = Callable[[Float64, NDArray[np.uint8]], Interval | None]


def find_pairs(scores: Float64, truth: NDArray[np.uint8], make: Any) -> Interval | None:
    """Return an interval that needs the area and the numbers of positives and negatives alone."""
    area, positives = area_under_curve(scores, truth), int(truth.sum())
    assert area is not None
    found: Interval = make(area, positives, len(truth) - positives)
    return found


METHODS: dict[str, Method] = {
    "bootstrap percentiles": lambda s, t: take_class_percentiles(s, t, RESAMPLES),
    "DeLong, logit": delong_interval,
    "Clopper-Pearson of pairs": lambda s, t: find_pairs(s, t, pair_interval),
    "Wilson of pairs": lambda s, t: find_pairs(s, t, area_interval),
}


def simulate(positives: int, area: float, ratio: float, trials: int) -> dict[str, Any]:
    """Return the share of intervals that contain the area, and the mean width, of each method."""
    truth = np.zeros(RECORDS, dtype=np.uint8)
    truth[:positives] = 1
    normal = ndtri(draw_uniform(0, f"coverage {positives}", trials * RECORDS))
    shift = float(ndtri(area)) * math.hypot(1, ratio)
    hits, widths = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0)
    for scores in normal.reshape(trials, RECORDS):
        scores[:positives] = ratio * scores[:positives] + shift
        for name, method in METHODS.items():
            found = method(scores, truth)
            assert found is not None
            hits[name] += found.low <= area <= found.high
            widths[name] += found.high - found.low
    coverage = {name: round(count / trials, 4) for name, count in hits.items()}
    width = {name: round(total / trials, 3) for name, total in widths.items()}
    row = {"positives": positives, "area": area, "ratio": ratio}
    return {**row, "coverage": coverage, "width": width}


def summarize(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each number of positives the lowest coverage and the mean width of each method."""
    summary = []
    for positives in dict.fromkeys(row["positives"] for row in rows):
        own = [row for row in rows if row["positives"] == positives]
        lowest = {name: min(row["coverage"][name] for row in own) for name in METHODS}
        widths = {name: round(sum(r["width"][name] for r in own) / len(own), 3) for name in METHODS}
        summary.append({"positives": positives, "lowest": lowest, "mean width": widths})
    return summary


def main() -> None:
    """Simulate all settings and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    trials = parser.parse_args().trials
    rows = [simulate(p, a, r, trials) for p in POSITIVES for a in AREAS for r in RATIOS]
    results = {"records": RECORDS, "trials": trials, "rows": rows, "summary": summarize(rows)}
    print(write_results("interval-coverage", "python -m benchmarks.interval_coverage", results))
    for row in results["summary"]:
        print(row)


if __name__ == "__main__":
    main()
