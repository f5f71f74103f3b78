"""CIFAR-100: the DCT against Kaiming by accuracy, with a test of equivalence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seedless.core.config import Config
from seedless.studies.engine.arm_tables import compare_arms, tabulate_arms
from seedless.studies.engine.figures import draw_arms
from seedless.studies.engine.grid import Grid, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init, choose_order
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Published, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = ("dct", "kaiming")
MARGIN = 0.005  # as published: half a percentage point
PUBLISHED = {("", "dct"): Published(0.784, 0.003, 20), ("", "kaiming"): Published(0.783, 0.004, 20)}

# Simulated images have fewer classes where there are fewer of them.
_CLASSES = {"smoke": 5, "small": 10, "paper": 100}


def make(options: StudyOptions) -> Grid:
    """Return both starts with the same order seeds."""
    data: dict[str, Any] = {}
    if options.simulated:
        data = {"size": 32, "channels": 3, "classes": _CLASSES[options.size.name]}

    def build(basis: str, seed: int) -> Config:
        init = {**choose_init(basis, seed), "residual_scale": None}
        return options.cifar(init=init, order=choose_order(seed), data=data)

    return make_grid("cifar100", ("init",), seed_points(ARMS, options.count, build))


def tabulate(results: Results) -> list[Table]:
    """Return accuracies with the published ones, and both arms compared."""
    notes = (
        "Published epochs were chosen on the test split, ours on 5,000 training images held out.",
    )
    accuracy = replace(results, measure="accuracy")
    return [
        tabulate_arms("Test accuracy", accuracy, PUBLISHED, notes),
        compare_arms("dct against kaiming", accuracy, [("", *ARMS)], margin=MARGIN),
    ]


def draw(results: Results) -> Figure:
    """Return every run as a point."""
    return draw_arms(replace(results, measure="accuracy"), "Test accuracy", PUBLISHED)


STUDY = Study(
    "cifar100", "Does a structured start match Kaiming on everyday images?", make, tabulate, draw
)
