"""Scoring: ``python -m benchmarks.evaluate``.

- The bootstrap of the macro AUC on a table the size of ChestMNIST's test split, 22,433 x 14, with
  2,000 resamples, against a loop over scikit-learn's `roc_auc_score`, timed on 2 resamples.
- All that is written into metrics.json for a split of 300 records and 12 classes.
- How often the intervals contain the true value, with few positives and with many.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

from benchmarks.measure import take_turns, write_results
from seedless.evaluate.bootstrap import bootstrap_areas
from seedless.evaluate.intervals import delong_interval
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.evaluate.scores import score_predictions
from seedless.numerics.counter_random import draw_uniform

RESAMPLES = 2000
LOOPED = 2
TRIALS = 300


def make_table(n: int, k: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return scores (n, k) and labels that are positive in 2 to 20 % of the records."""
    rates = np.linspace(0.02, 0.2, k)
    labels = (draw_uniform(0, "labels", n * k).reshape(n, k) < rates).astype(np.uint8)
    scores = 0.7 * draw_uniform(0, "scores", n * k).reshape(n, k) + 0.3 * labels
    return scores, labels


def loop_over_resamples(
    scores: NDArray[np.float64], labels: NDArray[np.uint8], resamples: int
) -> list[float]:
    """Return macro AUCs the straightforward way: pick rows, score, repeat."""
    n = len(labels)
    found = []
    for resample in range(resamples):
        rows = (draw_uniform(resample, "rows", n) * n).astype(np.int64)
        found.append(float(roc_auc_score(labels[rows], scores[rows], average="macro")))
    return found


def measure_bootstrap() -> dict[str, float]:
    """Seconds for all resamples, for one of the loop's, and how many times faster one is."""
    scores, labels = make_table(22_433, 14)
    start = time.perf_counter()
    bootstrap_areas(scores, labels, RESAMPLES)
    whole = time.perf_counter() - start
    few = 100
    times = take_turns(
        {
            "bootstrap": lambda: bootstrap_areas(scores, labels, few),
            "loop": lambda: loop_over_resamples(scores, labels, LOOPED),
        },
        rounds=5,
    )
    ours, theirs = times["bootstrap"] / few, times["loop"] / LOOPED
    return {
        "records": len(labels),
        "classes": labels.shape[1],
        "resamples": RESAMPLES,
        "seconds": whole,
        "seconds a resample": ours,
        "seconds a resample of the loop": theirs,
        "times faster": theirs / ours,
    }


def measure_scoring() -> dict[str, float]:
    """Seconds to score one split of 300 records and 12 classes with 128 features."""
    scores, labels = make_table(300, 12)
    features = draw_uniform(0, "features", 300 * 128).reshape(300, 128).astype(np.float32)
    ids = np.array([str(row) for row in range(300)])
    names = tuple(f"class {k}" for k in range(12))
    split = {"validation": SplitPredictions(ids, scores, labels, features)}
    predictions = Predictions(names, "sha256:" + 64 * "0", split)
    return take_turns({"seconds": lambda: score_predictions(predictions)}, rounds=15)


def measure_coverage() -> list[dict[str, Any]]:
    """Share of tables whose 95 % interval holds the true area: 4 classes, 300 records each."""
    rows = []
    for positives in (1, 2, 3, 5, 10, 30, 100):
        for shift, truth in ((0.8, 0.7142), (2.0, 0.9214)):
            hits = {"macro, bootstrap": 0.0, "class, delong": 0.0}
            for trial in range(TRIALS):
                noise = ndtri(draw_uniform(trial, f"noise {positives}", 300 * 4)).reshape(300, 4)
                labels = np.zeros((300, 4), dtype=np.uint8)
                for k in range(4):  # each class has positives of its own
                    labels[k * positives % 300 :][:positives, k] = 1
                scores = noise + shift * labels
                macro = bootstrap_areas(scores, labels, 400).macro
                if macro is not None:
                    hits["macro, bootstrap"] += macro.low <= truth <= macro.high
                for k in range(4):
                    found = delong_interval(scores[:, k], labels[:, k])
                    if found is not None:
                        hits["class, delong"] += (found.low <= truth <= found.high) / 4
            shares = {name: round(count / TRIALS, 3) for name, count in hits.items()}
            rows.append({"positives": positives, "area": truth, **shares})
    return rows


def main() -> None:
    """Measure, write, and say what was found."""
    results = {
        "bootstrap": measure_bootstrap(),
        "scoring": measure_scoring(),
        "coverage": measure_coverage(),
    }
    path = write_results("evaluate", "python -m benchmarks.evaluate", results)
    print(results["bootstrap"], results["scoring"], sep="\n")
    for row in results["coverage"]:
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    print(path)


if __name__ == "__main__":
    main()
