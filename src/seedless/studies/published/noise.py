"""What noise costs a model of each basis: scores of the test records with more and more noise.

Its seeded runs are those of the study `basis`; a seed-free run of each basis is added.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seedless.analysis.robustness import measure_run_robustness
from seedless.data.readers.nstdb import KINDS
from seedless.evaluate.robustness import Row
from seedless.stats.group_tests import friedman
from seedless.studies.engine.arm_tables import format_group_test
from seedless.studies.engine.figures import draw_lines
from seedless.studies.engine.grid import Grid, Point, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    Table,
    compare_with_published,
    format_mean,
    mean_and_sd,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASES = ("hartley", "hadamard", "sinusoidal", "dct", "mixed")
FREE = "seed-free"
SEEDS = 5  # as published
SNRS = (24.0, 18.0, 12.0, 6.0, 0.0)
NAMES = {"bw": "baseline wander", "ma": "muscle", "em": "electrode motion"}

# Macro AUC without noise, and how much lower it is at 0 dB, by kind; mixed is not published.
CLEAN = {"hartley": 0.959, "hadamard": 0.957, "sinusoidal": 0.951, "dct": 0.951}
DROPS = {
    "hartley": {"bw": 0.033, "ma": 0.035, "em": 0.057},
    "hadamard": {"bw": 0.041, "ma": 0.046, "em": 0.070},
    "sinusoidal": {"bw": 0.050, "ma": 0.063, "em": 0.064},
    "dct": {"bw": 0.054, "ma": 0.063, "em": 0.091},
}
LEVEL = 0.05
P_VALUES = {"bw": 0.18, "ma": 0.18, "em": 0.069}


def make(options: StudyOptions) -> Grid:
    """Return every basis with the same order seeds, and once without a seed."""
    points: list[Point] = []
    for basis in BASES:
        points += seed_points((basis,), min(options.count, SEEDS), options.ecg_run)
        points.append(Point(basis, FREE, options.ecg_run(basis, None), FREE))
    return make_grid("noise", ("init.basis",), points)


def measure(results: Results) -> dict[Path, tuple[Row, ...]]:
    """Return the scores of every finished run under each kind of noise, by its folder."""
    folder, data = results.options.noise, results.options.data_path
    source = "simulated" if folder is None else "nstdb"
    return {
        one.run: measure_run_robustness(
            one.run, source=source, noise_path=folder, snrs=SNRS, data=data
        ).rows
        for one in results.outcomes
        if one.ok
    }


def find_drops(results: Results, basis: str, block: str, kind: str, snr: float) -> dict[str, float]:
    """Return by replicate how much a kind of noise at a ratio lowers the macro AUC."""
    return {
        one.point.replicate: row.drop
        for one in results.outcomes_of(basis, block)
        for row in results.measured.get(one.run, ())
        if (row.kind, row.snr_db) == (kind, snr) and row.drop is not None
    }


def tabulate(results: Results) -> list[Table]:
    """Return what each kind costs at 0 dB and at each ratio, and whether bases differ in it."""
    recorded = results.options.noise is not None
    source = "Noise of the MIT-BIH Noise Stress Test Database." if recorded else "Simulated noise."
    note = f"{source} Drops: macro AUC without noise minus AUC with it. Published: {SEEDS} seeds."
    return [tabulate_drops(results, note), tabulate_ratios(results), compare_bases(results)]


def tabulate_drops(results: Results, note: str) -> Table:
    """Return one row per basis and kind: the drop at 0 dB, with the published one."""
    rows, values = [], []
    for basis in BASES:
        clean = list(results.scores(basis, "").values())
        free = list(results.scores(basis, FREE).values())
        cells = _format_row(results, clean, CLEAN.get(basis), free)
        rows.append((f"{basis}, no noise", *cells))
        for kind in KINDS:
            drops = list(find_drops(results, basis, "", kind, 0.0).values())
            alone = list(find_drops(results, basis, FREE, kind, 0.0).values())
            published = DROPS.get(basis, {}).get(kind)
            cells = _format_row(results, drops, published, alone)
            rows.append((f"{basis}, {NAMES[kind]}", *cells))
            values.append({"basis": basis, "kind": kind, "drops": drops, "published": published})
    columns = ("", "seeds", "AUC, or drop at 0 dB", *PUBLISHED_COLUMNS, "seed-free run")
    title = "What noise as strong as the signal takes from the macro AUC"
    return Table(title, columns, tuple(rows), (note,), tuple(values))


def _format_row(
    results: Results, ours: list[float], published: float | None, alone: list[float]
) -> tuple[str, ...]:
    known = None if published is None else results.mark_published(Published(published))
    return str(len(ours)), *compare_with_published(ours, known)[0], format_mean(alone)


def tabulate_ratios(results: Results) -> Table:
    """Return the mean drop over all runs of a basis at every ratio."""
    rows = []
    for kind in KINDS:
        for basis in BASES:
            cells = []
            for snr in SNRS:
                drops = [
                    drop
                    for block in results.grid.blocks
                    for drop in find_drops(results, basis, block, kind, snr).values()
                ]
                cells.append(f"{sum(drops) / len(drops):+.4f}" if drops else "none")
            rows.append((f"{NAMES[kind]}, {basis}", *cells))
    columns = ("", *(f"{snr:g} dB" for snr in SNRS))
    return Table("Mean drop by ratio of signal to noise, all runs", columns, tuple(rows))


def compare_bases(results: Results) -> Table:
    """Return Friedman's test over the published bases for each kind, with seeds as blocks."""
    rows = []
    for kind in KINDS:
        drops = {basis: find_drops(results, basis, "", kind, 0.0) for basis in CLEAN}
        shared = [n for n in drops["dct"] if all(n in drops[basis] for basis in CLEAN)]
        groups = {basis: [drops[basis][n] for n in shared] for basis in CLEAN}
        statistic, p, sentence = format_group_test(friedman, groups)
        if p and float(p) >= LEVEL / len(KINDS):
            sentence = f"not counted as a difference: p is above {LEVEL:g} / {len(KINDS)}"
        published = f"{P_VALUES[kind]:g}"
        rows.append((NAMES[kind], str(len(shared)), statistic, p, published, sentence))
    columns = ("noise", "seeds", "Friedman", "p", "published p", "in words")
    note = (
        "The four published bases, without mixed. There are three tests, so each counts below "
        f"{LEVEL:g} / {len(KINDS)} alone."
    )
    return Table(
        "Primary: do bases differ in what noise costs at 0 dB?", columns, tuple(rows), (note,)
    )


def draw(results: Results) -> Figure:
    """Return the drop against the ratio, averaged over kinds and runs, with one SD."""
    lines = {}
    for basis in BASES:
        means, spreads = [], []
        for snr in SNRS:
            drops = [
                drop
                for block in results.grid.blocks
                for kind in KINDS
                for drop in find_drops(results, basis, block, kind, snr).values()
            ]
            mean, sd = mean_and_sd(drops or [0.0])
            means.append(mean)
            spreads.append(sd)
        lines[basis] = (SNRS, means, spreads)
    return draw_lines(lines, "signal to noise, dB", "drop of macro AUC (all kinds, one SD)")


STUDY = Study(
    "noise",
    "What does noise cost, and does it cost one basis more than another?",
    make,
    tabulate,
    draw,
    ("noise",),
    measure,
)
