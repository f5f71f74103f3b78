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

ARMS = ("dct", "kaiming_normal", "dct at 1", "kaiming_normal at 0.01")
PAIRS = (("dct", "kaiming_normal at 0.01"), ("dct at 1", "kaiming_normal"))
MARGIN = 0.005  # as published: half a percentage point
PUBLISHED = {
    ("", "dct"): Published(0.784, 0.003, 20),
    ("", "kaiming_normal"): Published(0.783, 0.004, 20),
}

# Simulated images have fewer classes where there are fewer of them.
_CLASSES = {"smoke": 5, "small": 10, "paper": 100}


def make(options: StudyOptions) -> Grid:
    """Return both starts at both residual scales, with the same order seeds."""
    data: dict[str, Any] = {}
    if options.simulated:
        data = {"size": 32, "channels": 3, "classes": _CLASSES[options.size.name]}

    def build(start: str, seed: int) -> Config:
        return options.cifar(init=choose_init(start, seed), order=choose_order(seed), data=data)

    factor = ("init.basis", "init.residual_scale")
    return make_grid("cifar100", factor, seed_points(ARMS, options.count, build))


def tabulate(results: Results) -> list[Table]:
    """Return accuracies with the published ones, and the arms that differ in their basis alone."""
    notes = (
        "dct has residual scale 0.01 and kaiming_normal 1, as published, where no other is named.",
        "Published epochs were chosen on the test split, ours on 5,000 training images held out.",
    )
    accuracy = replace(results, measure="accuracy")
    return [
        tabulate_arms("Test accuracy", accuracy, PUBLISHED, notes),
        compare_arms(
            "Like for like: the basis alone",
            accuracy,
            [("", *pair) for pair in PAIRS],
            margin=MARGIN,
        ),
    ]


def draw(results: Results) -> Figure:
    """Return every run as a point."""
    return draw_arms(replace(results, measure="accuracy"), "Test accuracy", PUBLISHED)


STUDY = Study(
    "cifar100", "Does a structured start match Kaiming on everyday images?", make, tabulate, draw
)
