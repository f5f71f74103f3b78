"""The headline table: structured against random initialization, with and without class weights.

The published comparison gave class weights to one arm alone. Here both are crossed, so that each
arm has one that differs from it in nothing but its initialization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.studies.engine.figures import draw_arms
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study, compare_arms, seed_points, tabulate_arms
from seedless.studies.engine.table import Published, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Model, its structured basis, and how many seeds were published at most.
MODELS = (("conformer", "mixed", 20), ("baseline", "dct", 20), ("xresnet1d101", "dct", 5))
WEIGHTS = {"": "none", " + weights": "sqrt"}

PUBLISHED = {
    ("conformer", "mixed + weights"): Published(0.959, 0.005, 20),
    ("conformer", "kaiming"): Published(0.953, 0.010, 20),
    ("conformer, seed-free", "golden"): Published(0.966),
    ("baseline", "dct + weights"): Published(0.956, 0.004, 20),
    ("baseline", "kaiming"): Published(0.947, 0.007, 20),
    ("xresnet1d101", "kaiming"): Published(0.947, 0.013, 5),
}


def make(options: StudyOptions) -> Grid:
    """Cross initialization with class weights for each model, and add the seed-free runs."""
    points: list[Point] = []
    for model, structured, most in MODELS:
        count = min(options.count, most)
        for basis in (structured, "kaiming"):
            for suffix, weights in WEIGHTS.items():

                def build(
                    seed: int, model: str = model, basis: str = basis, weights: str = weights
                ) -> Config:
                    return options.ecg(
                        model={"name": model},
                        init=choose_init(basis, seed),
                        order={"name": "seeded", "seed": seed},
                        loss={"class_weights": weights},
                    )

                points += seed_points(f"{basis}{suffix}", count, build, model)
    for order in ("content", "golden"):
        config = options.ecg(order={"name": order}, init=choose_init("mixed"))
        points.append(Point(order, "seed-free", config, "conformer, seed-free"))
    also = {"conformer, seed-free": ("order.name",)}
    return make_grid("main", ("init", "loss.class_weights"), points, also)


def tabulate(results: Results) -> list[Table]:
    """Return the arms beside the published values, and each arm against its equal."""
    notes = (
        "Published: structured arms with class weights, Kaiming arms without.",
        "Structured arms begin alike in every run: their seeds vary the order alone.",
        "xresnet1d101: beside five published runs. The benchmark it comes from has .957, one run.",
    )
    arms = tabulate_arms(
        "Test macro AUC by initialization and class weights", results, PUBLISHED, notes
    )
    pairs = [
        (model, f"{basis}{suffix}", f"kaiming{suffix}")
        for model, basis, _ in MODELS
        for suffix in WEIGHTS
    ]
    return [arms, compare_arms("Like for like: structured against Kaiming", results, pairs)]


def draw(results: Results) -> Figure:
    """Return every run as a point, arm by arm."""
    return draw_arms(results, "Test macro AUC", PUBLISHED)


STUDY = Study(
    "main",
    "Does structured initialization match or beat Kaiming, and does it vary less over seeds?",
    make,
    tabulate,
    draw,
)
