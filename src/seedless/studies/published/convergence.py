"""Validation AUC by epoch, mean and SD over seeds: which initialization learns sooner?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.studies.engine.figures import draw_lines
from seedless.studies.engine.grid import Grid, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table, mean_and_sd
from seedless.studies.shared.headline_arms import EQUAL_KAIMING, START_FACTOR
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = ("mixed", "kaiming", EQUAL_KAIMING["conformer"])
Curve = tuple[list[float], list[float], list[float]]  # epochs, means, SDs


def make(options: StudyOptions) -> Grid:
    """Return structured and random starts with class weights, paired by seed."""
    points = seed_points(ARMS, options.count, options.ecg_run)
    return make_grid("convergence", START_FACTOR, points)


def find_curve(results: Results, arm: str) -> Curve:
    """Return mean and SD of the validation score at every epoch that was validated."""
    scores: dict[int, list[float]] = {}
    for one in results.outcomes_of(arm):
        for line in read_log(one.run / LOG) if one.ok else ():
            if line["score"] is not None:
                scores.setdefault(int(line["epoch"]), []).append(line["score"])
    epochs = sorted(scores)
    points = [mean_and_sd(scores[epoch]) for epoch in epochs]
    return (
        [float(epoch) for epoch in epochs],
        [mean for mean, _ in points],
        [sd for _, sd in points],
    )


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
    """Return the curves with a band of one SD."""
    lines = {arm: find_curve(results, arm) for arm in ARMS}
    return draw_lines(lines, "epoch", "validation macro AUC (mean, one SD)")


STUDY = Study(
    "convergence", "Does a structured start learn sooner or more evenly?", make, tabulate, draw
)
