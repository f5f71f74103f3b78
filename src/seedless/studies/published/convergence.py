"""Validation AUC against epoch, mean and SD over seeds: who learns sooner, and who strays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.studies.engine.figures import draw_lines
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study, seed_points
from seedless.studies.engine.table import Table
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = ("mixed", "kaiming")
Curve = tuple[list[float], list[float], list[float]]  # epochs, means, SDs


def make(options: StudyOptions) -> Grid:
    """Structured and random starts with class weights, paired by seed."""
    points: list[Point] = []
    for basis in ARMS:

        def build(seed: int, basis: str = basis) -> Config:
            order = {"name": "seeded", "seed": seed}
            return options.ecg(init=choose_init(basis, seed), order=order)

        points += seed_points(basis, options.count, build)
    return make_grid("convergence", ("init",), points)


def find_curve(results: Results, arm: str) -> Curve:
    """Return mean and SD of the validation score at every epoch that was validated."""
    scores: dict[int, list[float]] = {}
    for one in results.of(arm):
        for line in read_log(one.run / LOG) if one.ok else ():
            if line["score"] is not None:
                scores.setdefault(int(line["epoch"]), []).append(line["score"])
    epochs = sorted(scores)
    means = [sum(scores[e]) / len(scores[e]) for e in epochs]
    spreads = []
    for epoch, mean in zip(epochs, means, strict=True):
        values = scores[epoch]
        total = sum((value - mean) ** 2 for value in values)
        spreads.append((total / (len(values) - 1)) ** 0.5 if len(values) > 1 else 0.0)
    return [float(epoch) for epoch in epochs], means, spreads


def tabulate(results: Results) -> list[Table]:
    """Return the curve of each arm at a few epochs."""
    rows = []
    for arm in ARMS:
        epochs, means, spreads = find_curve(results, arm)
        count = len(results.scores(arm))
        places = sorted({round(k * (len(epochs) - 1) / 5) for k in range(6)}) if epochs else []
        for place in places:
            value = f"{means[place]:.4f}" + (f" ± {spreads[place]:.4f}" if count > 1 else "")
            rows.append((arm, f"{epochs[place]:.0f}", str(count), value))
    columns = ("arm", "epoch", "runs", "validation macro AUC")
    return [Table("Validation macro AUC by epoch", columns, tuple(rows))]


def draw(results: Results) -> Figure:
    """Return both curves with a band of one SD."""
    lines = {arm: find_curve(results, arm) for arm in ARMS}
    return draw_lines(lines, "epoch", "validation macro AUC (mean, one SD)")


STUDY = Study(
    "convergence", "Does a structured start learn sooner or more evenly?", make, tabulate, draw
)
