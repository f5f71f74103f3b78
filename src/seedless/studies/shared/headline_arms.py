"""The arms of the headline comparison: structured and Kaiming initialization, with class weights.

The published comparison gave class weights to the structured arm alone. Here both are crossed, so
that each arm has another that differs from it only in its initialization.
"""

from seedless.studies.engine.grid import Point, seed_point
from seedless.studies.engine.options import StudyOptions, choose_init, choose_order

# The structured basis of each model, and how many seeds were published at most.
MODELS = {"conformer": ("mixed", 20), "baseline": ("dct", 20), "xresnet1d101": ("dct", 5)}
CLASS_WEIGHTS = {"": "none", " + weights": "sqrt"}  # by the end of an arm's name
FACTOR = ("init", "loss.class_weights")


def make_headline_arms(options: StudyOptions, model: str) -> list[Point]:
    """Return the runs of a model: two initializations, with and without class weights."""
    structured, most = MODELS[model]
    return [
        seed_point(
            f"{basis}{suffix}",
            seed,
            options.ecg(
                model={"name": model},
                init=choose_init(basis, seed),
                order=choose_order(seed),
                loss={"class_weights": weights},
            ),
            model,
        )
        for basis in (structured, "kaiming")
        for suffix, weights in CLASS_WEIGHTS.items()
        for seed in range(min(options.count, most))
    ]
