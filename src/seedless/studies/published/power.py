"""Were there enough seeds? The power of the headline comparison, and the runs it would take.

Its runs are those of the study `main`, so with that study in the store nothing is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.errors import StatsError
from seedless.stats.effect import Effect, cohens_d
from seedless.stats.equivalence import Equivalence, tost
from seedless.stats.power import find_power, find_runs_needed
from seedless.studies.engine.arm_tables import Pair
from seedless.studies.engine.figures import DOT, INK, MARK, STAR, make_axes, style_axes
from seedless.studies.engine.grid import Grid, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table
from seedless.studies.shared.headline_arms import (
    CLASS_WEIGHTS,
    EQUAL_KAIMING,
    FACTOR,
    MODELS,
    make_headline_arms,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WANTED = 0.8
MARGIN = 0.015  # of the published test of equivalence
EFFECTS = (0.2, 0.5, 0.8)  # small, medium, large, as Cohen has them
COUNTS = (5, 10, 20, 25, 50, 100, 200)
# As published: class weights, residual scale and head in one arm alone. Then like for like.
AS_PUBLISHED = {
    "conformer": ("mixed + weights", "kaiming"),
    "baseline": ("dct + weights", "kaiming"),
}
# With 20 seeds: power, and runs per arm for 80 %. That of the baseline was published as > 0.99.
PUBLISHED = {"conformer": (0.71, 25), "baseline": (0.99, 7)}
PUBLISHED_COUNT = 20
# The published table: Cohen's d, power and runs for 80 % in its own words, and its test of
# equivalence. CIFAR-100 was compared by accuracy.
PUBLISHED_ROWS = {
    "conformer: mixed - kaiming": (0.82, "71 %", "25", "p < 0.001, ± 0.015"),
    "baseline: dct - kaiming": (1.60, "> 99 %", "7", "not tested"),
    "CIFAR-100: dct - kaiming_normal": (0.24, "11 %", "not given", "p < 0.001, ± 0.005"),
}


def make(options: StudyOptions) -> Grid:
    """Return the arms of the headline comparison of two models."""
    points = [point for model in AS_PUBLISHED for point in make_headline_arms(options, model)]
    return make_grid("power", FACTOR, points)


def list_pairs() -> list[Pair]:
    """Return for each model the published pair, then those that differ in their basis alone."""
    pairs = []
    for model, published in AS_PUBLISHED.items():
        basis, equal = MODELS[model][0], EQUAL_KAIMING[model]
        pairs.append((model, *published))
        pairs += [(model, f"{basis}{end}", f"{equal}{end}") for end in CLASS_WEIGHTS]
    return pairs


def find_effect(
    results: Results, pair: Pair
) -> tuple[tuple[int, int], Effect | None, Equivalence | None]:
    """Return how many runs a pair has, and Cohen's d and TOST where they are defined."""
    model, *arms = pair
    one, other = (list(results.scores(arm, model).values()) for arm in arms)
    counts = (len(one), len(other))
    try:
        return counts, cohens_d(one, other), tost(one, other, MARGIN)
    except StatsError:
        return counts, None, None


def tabulate(results: Results) -> list[Table]:
    """Return power and runs needed at the measured effects, and power by n for fixed effects."""
    rows, values = [], []
    for pair in list_pairs():
        counts, effect, equality = find_effect(results, pair)
        model, *arms = pair
        known = PUBLISHED[model] if tuple(arms) == AS_PUBLISHED[model] else None
        published = "" if known is None else f"{known[0]:g}, {known[1]}"
        name = f"{model}: {arms[0]} - {arms[1]}"
        if effect is None or equality is None:
            blank = ("", "", "", "", "", published, "")
            rows.append((name, f"{counts[0]}, {counts[1]}", "not defined", *blank))
            continue
        power = find_power(effect.d, *counts).power
        low, high = effect.wald_t
        needed = find_runs_needed(effect.d, WANTED).per_arm
        rows.append(
            (
                name,
                f"{counts[0]}, {counts[1]}",
                f"{effect.d:+.2f}",
                f"{low:+.2f} to {high:+.2f}",
                f"{power:.2f}",
                _show(needed),
                _show_needed(low, high),
                f"{equality.p:.3g}",
                published,
                _subtract(power, needed, known) if known and results.options.as_published else "",
            )
        )
        numbers = {"d": effect.d, "power": power, "needed": needed, "tost": equality.p}
        values.append({"pair": list(pair), **numbers})
    columns = (
        *("", "n", "d", "its 95 % interval", "power at n", "n for 80 %"),
        *("n for 80 % over the interval", f"TOST p, ± {MARGIN:g}", "published", "difference"),
    )
    notes = (
        "Published, with 20 seeds an arm: power, and runs an arm for 80 %, where one arm alone had "
        "class weights, residual scale 0.01 and, in the conformer, an equiangular head. For the "
        "baseline the power was published as more than 0.99.",
        "CIFAR-100 stands in the table of published effects alone: its runs are those of the study "
        "`cifar100`.",
        "Power at the effect found says no more than p does; the interval of d says how little is "
        "known of the runs needed.",
    )
    table = Table("Power at the effect found", columns, tuple(rows), notes, tuple(values))
    return [table, tabulate_published(), _tabulate_counts(results)]


def tabulate_published() -> Table:
    """Return power and runs needed at the published effects, beside what was published of them."""
    rows, values = [], []
    for name, (d, power, count, equality) in PUBLISHED_ROWS.items():
        found = find_power(d, PUBLISHED_COUNT).power
        needed = find_runs_needed(d, WANTED).per_arm
        cells = (f"{d:.2f}", power, f"{100 * found:.0f} %", count, _show(needed), equality)
        rows.append((name, str(PUBLISHED_COUNT), *cells))
        values.append({"pair": name, "d": d, "power": found, "needed": needed})
    columns = (
        *("", "n", "published d", "published power", "computed", "published n for 80 %"),
        *("computed", "published TOST"),
    )
    note = "Computed from the published d and n alone: nothing was trained for this table."
    return Table("Power at the published effects", columns, tuple(rows), (note,), tuple(values))


def _tabulate_counts(results: Results) -> Table:
    rows, values = [], []
    for name, d in list_effects(results).items():
        powers = [find_power(d, count).power for count in COUNTS]
        needed = find_runs_needed(d, WANTED).per_arm
        rows.append((name, *(f"{power:.2f}" for power in powers), _show(needed)))
        values.append({"effect": name, "d": d, "power": powers, "needed": needed})
    columns = ("d", *(f"n {count}" for count in COUNTS), "n for 80 %")
    return Table("Power by runs an arm", columns, tuple(rows), (), tuple(values))


def list_effects(results: Results) -> dict[str, float]:
    """Return the effects that curves are drawn for: Cohen's three, and the measured one."""
    effects = {f"{d:g}": d for d in EFFECTS}
    for model, pair in AS_PUBLISHED.items():
        _, effect, _ = find_effect(results, (model, *pair))
        if effect is not None:
            effects[f"found as published, {model}, {abs(effect.d):.2f}"] = abs(effect.d)
    return effects


def _subtract(power: float, needed: int | None, known: tuple[float, int]) -> str:
    """Return power and runs needed, minus the published ones."""
    more = "out of reach" if needed is None else f"{needed - known[1]:+d}"
    return f"{power - known[0]:+.2f}, {more}"


def _show(needed: int | None) -> str:
    return "out of reach" if needed is None else str(needed)


def _show_needed(low: float, high: float) -> str:
    """Return the fewest and the most runs that an interval of d allows."""
    fewest = find_runs_needed(max(abs(low), abs(high)), WANTED).per_arm
    if low <= 0 <= high:
        return f"{_show(fewest)} or more, without end"
    return f"{_show(fewest)} to {_show(find_runs_needed(min(abs(low), abs(high)), WANTED).per_arm)}"


def draw(results: Results) -> Figure:
    """Return power by runs per arm, one curve for each effect."""
    figure, axes = make_axes(9.6, 4.6, (0.075, 0.12, 0.68, 0.82))
    counts = range(2, 201)
    colours = (DOT, MARK, INK, STAR, "#ae1f17")
    for (name, d), colour in zip(list_effects(results).items(), colours, strict=False):
        powers = [find_power(d, count).power for count in counts]
        axes.plot(counts, powers, color=colour, linewidth=1.8, label=f"d {name}")
    axes.axhline(WANTED, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    for power, _ in PUBLISHED.values():
        axes.plot(20, power, "D", markerfacecolor="none", color=INK)
    axes.plot([], [], "D", markerfacecolor="none", color=INK, label="published, n = 20")
    axes.set_xscale("log")
    axes.set_xticks([2, 5, 10, 20, 50, 100, 200], minor=False)
    axes.set_xticklabels(["2", "5", "10", "20", "50", "100", "200"])
    axes.set_xlim(2, 200)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("power, two-sided test at .05", fontsize=9)
    beside = (1.01, 1.0)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=beside, edgecolor="none")
    style_axes(figure, axes, "runs an arm")
    axes.grid(axis="y", color="#dfddd4", linewidth=0.6)
    return figure


STUDY = Study(
    "power",
    "Were there enough seeds to see the difference, and how many would it take?",
    make,
    tabulate,
    draw,
)
