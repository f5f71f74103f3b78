"""Tables of scores and labels to test on, drawn from the counter: the same on every machine."""

import numpy as np

from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.numerics.counter_random import draw_uniform

WEIGHTS = "sha256:" + 64 * "a"


def make_table(n, k, seed=0, levels=None, rate=0.3, effect=0.4):
    """Return scores (n, k) in (0, 1), on ``levels`` values if given, and labels."""
    noise = draw_uniform(seed, "noise", n * k).reshape(n, k)
    labels = (draw_uniform(seed, "labels", n * k).reshape(n, k) < rate).astype(np.uint8)
    scores = (1 - effect) * noise + effect * labels * draw_uniform(seed, "size", n * k).reshape(
        n, k
    )
    if levels is not None:
        scores = np.floor(scores * levels) / levels
    return scores, labels


def make_scored(n=40, k=3, seed=0, **options):
    scores, labels = make_table(n, k, seed, **options)
    ids = np.array([f"record {row:04d}" for row in range(n)])
    features = draw_uniform(seed, "features", n * 5).reshape(n, 5).astype(np.float32)
    return SplitPredictions(ids, scores, labels, features)


def make_predictions(seed=0, task="multi-label", **options):
    splits = {"validation": make_scored(60, seed=seed + 100, **options)}
    splits["test"] = make_scored(seed=seed, **options)
    return Predictions(("a", "b", "c"), WEIGHTS, splits, task)
