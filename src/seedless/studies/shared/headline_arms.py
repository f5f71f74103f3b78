"""The arms of the headline comparison: structured and Kaiming starts, with class weights.

The published comparison gave class weights, a residual scale of 0.01 and, to the conformer, an
equiangular head to the structured arm alone. Here a third arm is Kaiming with that scale and head,
and class weights are crossed, so that each arm has another that differs from it in its basis alone.
"""

from collections.abc import Iterable
from typing import Any

from seedless.studies.engine.grid import Point
from seedless.studies.engine.options import StudyOptions, choose_init, choose_order

# The structured basis of each model, and how many seeds were published at most.
MODELS = {"conformer": ("mixed", 20), "baseline": ("dct", 20), "xresnet1d101": ("dct", 5)}
# Kaiming with the residual scale and the head of the structured arm.
EQUAL_KAIMING = {
    "conformer": "kaiming at 0.01 etf",
    "baseline": "kaiming at 0.01",
    "xresnet1d101": "kaiming at 0.01",
}
CLASS_WEIGHTS = {"": "none", " + weights": "sqrt"}  # by the end of an arm's name
START_FACTOR = ("init.basis", "init.residual_scale", "init.heads")
FACTOR = (*START_FACTOR, "loss.class_weights")


def make_headline_arms(options: StudyOptions, model: str) -> list[Point]:
    """Return the runs of a model: three starts, with and without class weights."""
    structured, most = MODELS[model]
    seeds, starts = min(options.count, most), (structured, "kaiming", EQUAL_KAIMING[model])
    return cross_class_weights(options, starts, seeds, model, model={"name": model})


def make_one_start_arms(options: StudyOptions, model: str, block: str) -> list[Point]:
    """Return the structured start and one Kaiming start in the same orders, with class weights.

    A random start that varies with the seed adds a spread of its own. Here the order alone varies
    in both arms, so that their spreads can be compared.
    """
    structured, most = MODELS[model]
    return [
        Point(
            start,
            f"order {seed}",
            options.ecg(
                model={"name": model},
                init=choose_init(start),
                order=choose_order(seed),
                loss={"class_weights": "sqrt"},
            ),
            block,
        )
        for start in (structured, EQUAL_KAIMING[model])
        for seed in range(min(options.count, most))
    ]


def cross_class_weights(
    options: StudyOptions, starts: Iterable[str], seeds: int, block: str, **changes: dict[str, Any]
) -> list[Point]:
    """Return the runs of each start, with and without class weights."""
    return [
        Point(
            f"{start}{suffix}",
            f"seed {seed}",
            options.ecg_run(start, seed, loss={"class_weights": weights}, **changes),
            block,
        )
        for start in starts
        for suffix, weights in CLASS_WEIGHTS.items()
        for seed in range(seeds)
    ]
