"""The arms of the headline comparison: structured and Kaiming initialization, with class weights.

The published comparison gave class weights to the structured arm alone. Here both are crossed, so
that each arm has another that differs from it only in its initialization.
"""

from collections.abc import Iterable
from typing import Any

from seedless.studies.engine.grid import Point
from seedless.studies.engine.options import StudyOptions

# The structured basis of each model, and how many seeds were published at most.
MODELS = {"conformer": ("mixed", 20), "baseline": ("dct", 20), "xresnet1d101": ("dct", 5)}
CLASS_WEIGHTS = {"": "none", " + weights": "sqrt"}  # by the end of an arm's name
FACTOR = ("init", "loss.class_weights")


def make_headline_arms(options: StudyOptions, model: str) -> list[Point]:
    """Return the runs of a model: two initializations, with and without class weights."""
    structured, most = MODELS[model]
    seeds, bases = min(options.count, most), (structured, "kaiming")
    return cross_class_weights(options, bases, seeds, model, model={"name": model})


def cross_class_weights(
    options: StudyOptions, bases: Iterable[str], seeds: int, block: str, **changes: dict[str, Any]
) -> list[Point]:
    """Return the runs of each basis, with and without class weights."""
    return [
        Point(
            f"{basis}{suffix}",
            f"seed {seed}",
            options.ecg_run(basis, seed, loss={"class_weights": weights}, **changes),
            block,
        )
        for basis in bases
        for suffix, weights in CLASS_WEIGHTS.items()
        for seed in range(seeds)
    ]
