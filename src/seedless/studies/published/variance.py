"""Where does the spread come from: initialization, order, fold, or the device's own operations?

Each is varied alone while the others are fixed; initialization and order are crossed as well. Runs
in the store repeat in every bit. What the device adds is therefore measured with torch's own layers
and flags, where there is a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import torch

from seedless.core.config import Config
from seedless.core.display import escape_plot_text
from seedless.core.errors import StatsError
from seedless.stats.variance_components import Source, decompose_crossed, separate_sources
from seedless.studies.engine.figures import DOT, MARK, make_axes, style_axes
from seedless.studies.engine.findings import read_finding, write_finding
from seedless.studies.engine.fold_pooling import choose_folds, list_folds
from seedless.studies.engine.grid import Grid, Point, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init, choose_order
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table, mean_and_sd
from seedless.studies.shared.plain_repeats import repeat_plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INITIALIZATION, ORDER, FOLD, DEVICE = "initialization", "order", "fold", "device operations"
CROSSED = "initialization x order"
MAX_CROSSED = 10  # seeds of initialization and of order that are crossed
PLANNED = 10  # seeds: docs/results/protocol.md
REPEATS = 10
REPEATED = "plain-repeats"  # the finding that holds the scores of repeats
REPEATED_FORM = {"scores": list, "device": str}
VARIED = {
    INITIALIZATION: "Kaiming seeds, content order",
    ORDER: "mixed start, order seeds",
    FOLD: "mixed start, content order, test folds 10, 9, 8",
    DEVICE: "mixed start, content order, torch's own layers and flags",
}
ON_A_CPU = "not measured: a CPU repeats"


def make(options: StudyOptions) -> Grid:
    """Return one block per source, and a block in which initialization and order are crossed."""

    def build(start: int, order: int | None) -> Config:
        return options.ecg(init=choose_init("kaiming", start), order=choose_order(order))

    count = options.count
    points = seed_points(("kaiming",), count, lambda _, seed: build(seed, None), INITIALIZATION)
    points += seed_points(("mixed",), count, options.ecg_run, ORDER)
    for test, val in list_folds(3):
        config = options.ecg_run("mixed", None, data=choose_folds(test, val))
        points.append(Point("mixed", f"test fold {test}", config, FOLD))
    points += [
        Point("kaiming", f"start {start}, order {order}", build(start, order), CROSSED)
        for start in range(min(count, MAX_CROSSED))
        for order in range(min(count, MAX_CROSSED))
    ]
    return make_grid("variance", (), points, {FOLD: ("data.test_fold", "data.val_fold")})


def measure_device(results: Results) -> list[float] | None:
    """Return the scores of plain repeats, or None where there is no GPU to run them on.

    They are a finding about the seed-free run, so that a machine without a GPU can tabulate them.
    """
    run = next((one.run for one in results.outcomes_of("mixed", FOLD) if one.ok), None)
    known = None if run is None else read_finding(run, REPEATED, REPEATED_FORM)
    if known is not None:
        return [float(score) for score in known["scores"]]
    config = results.options.ecg_run("mixed", None)
    if config.execution.device == "cpu" or not torch.cuda.is_available():
        return None
    scores: list[float] = []
    while len(scores) < REPEATS:
        scores += repeat_plain(config, 1)
        if run is not None:
            write_repeats(run, scores)
    return scores


def write_repeats(run: Path, scores: list[float]) -> None:
    """Write the scores of plain repeats beside the seed-free run that they repeat."""
    device = torch.cuda.get_device_name()
    write_finding(run, REPEATED, {"scores": scores, "device": device})


def list_scores(results: Results) -> dict[str, list[float]]:
    """Return the scores of each source that could be measured here."""
    arms = {INITIALIZATION: "kaiming", ORDER: "mixed", FOLD: "mixed"}
    scores = {name: list(results.scores(arm, name).values()) for name, arm in arms.items()}
    return scores if results.measured is None else {**scores, DEVICE: results.measured}


def separate(scores: dict[str, list[float]]) -> dict[str, Source]:
    """Return the variance of each source that has at least two scores.

    Our runs repeat exactly, so their scores contain no noise that would have to be subtracted.
    """
    enough = {name: values for name, values in scores.items() if len(values) > 1}
    if not enough:
        return {}
    return {row.name: row for row in separate_sources(enough).rows}


def tabulate(results: Results) -> list[Table]:
    """Return SD and share of each source, and the crossed design's components."""
    scores = list_scores(results)
    sources = separate(scores)
    whole = math.fsum(row.observed for row in sources.values())
    rows, values = [], []
    for name, varied in VARIED.items():
        row = sources.get(name)
        if row is None:
            why = ON_A_CPU if name == DEVICE and name not in scores else "too few runs"
            rows.append((name, str(len(scores.get(name, []))), why, "", "", varied))
            continue
        share = row.observed / whole if whole else None
        sd = math.sqrt(row.observed)
        shown = "" if share is None else f"{share:.1%}"
        low, high = find_sd_interval(sd, row.n)
        interval = f"{low:.5f} to {high:.5f}"
        rows.append((name, str(row.n), f"{sd:.5f}", interval, shown, varied))
        values.append(
            {"source": name, "n": row.n, "sd": sd, "interval": [low, high], "share": share}
        )
    notes = (
        "Each source is varied alone. Shares are of the sum of these variances: they suppose that "
        "sources add up.",
        "Intervals are for normal scores, by the chi-square distribution.",
        "Folds differ in their records as well, so their SD holds the luck of the test set.",
        "Device operations: the same start and batches, trained by the step most people write, "
        "without deterministic mode. On a CPU with a fixed number of threads such repeats are "
        "equal and the component is 0; runs of ours repeat on a GPU too.",
        *describe_repeats(scores.get(DEVICE, [])),
    )
    if results.options.count < PLANNED:
        notes = (*notes, f"Seeds: {results.options.count} of the {PLANNED} that were planned.")
    columns = ("source", "n", "SD of macro AUC", "95 % interval", "share", "what is varied")
    title = "Spread of test macro AUC by source"
    return [Table(title, columns, tuple(rows), notes, tuple(values)), _tabulate_crossed(results)]


def describe_repeats(scores: Sequence[float]) -> tuple[str, ...]:
    """Return where the scores of plain repeats lie: few of them need not be normal."""
    if not scores:
        return ()
    return (
        f"The {len(scores)} of {REPEATS} planned repeats on the device lie from {min(scores):.4f} "
        f"to {max(scores):.4f}, their median is {median(scores):.4f}. One far from the others "
        "makes most of an SD, and its interval supposes normal scores, which these need not be.",
    )


def find_sd_interval(sd: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a standard deviation of n normal scores: (n - 1) s^2 is chi-square."""
    from scipy.stats import chi2

    tail = (1 - level) / 2
    high, low = (float(chi2.ppf(share, n - 1)) for share in (tail, 1 - tail))
    return sd * math.sqrt((n - 1) / low), sd * math.sqrt((n - 1) / high)


def _tabulate_crossed(results: Results) -> Table:
    scores = results.scores("kaiming", CROSSED)
    labels = [name.split(", ") for name in scores]
    columns = ("component", "df", "variance", "SD", "share")
    title = "Initialization crossed with order, Kaiming"
    try:
        result = decompose_crossed(
            list(scores.values()),
            {INITIALIZATION: [a for a, _ in labels], ORDER: [b for _, b in labels]},
        )
    except StatsError as error:
        return Table(title, columns, (), (f"Not decomposed: {error}.",))
    rows = tuple(
        (
            part.source,
            str(part.df),
            f"{part.variance:.3g}",
            "below 0" if part.sd is None else f"{part.sd:.5f}",
            "" if part.share is None else f"{part.share:.1%}",
        )
        for part in result.components
    )
    values = tuple({"source": p.source, "variance": p.variance} for p in result.components)
    return Table(title, columns, rows, (result.sentence,), values)


def draw(results: Results) -> Figure:
    """Return every run as its distance from its source's mean, with one SD."""
    scores = list_scores(results)
    figure, axes = make_axes(8.0, 3.2, (0.2, 0.2, 0.76, 0.72))
    names = list(reversed(VARIED))
    for place, name in enumerate(names):
        values = scores.get(name, [])
        if len(values) < 2:
            why = ON_A_CPU if name == DEVICE else "too few runs"
            axes.text(0.5, place, why, fontsize=8, ha="center", va="center")
            axes.texts[-1].set_transform(axes.get_yaxis_transform())
            continue
        mean, spread = mean_and_sd(values)
        away = [value - mean for value in values]
        axes.plot(away, [place] * len(away), "o", color=DOT, alpha=0.55, markeredgewidth=0)
        axes.errorbar(0, place, xerr=spread, color=MARK, capsize=4)
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels(
        [escape_plot_text(f"{name} ({len(scores.get(name, []))})") for name in names], fontsize=8
    )
    axes.set_ylim(-0.6, len(names) - 0.4)
    style_axes(figure, axes, "test macro AUC minus the mean of its source; bars are one SD")
    return figure


STUDY = Study(
    "variance",
    "How much of the spread is initialization, order, fold, and the device?",
    make,
    tabulate,
    draw,
    measure=measure_device,
)
