"""Were there enough seeds? The power of the headline comparison, and the runs it would take.

Its runs are those of the study `main`, so with that study in the store nothing is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.errors import StatsError
from seedless.stats.effect import Effect, cohens_d
from seedless.stats.power import find_power, find_runs_needed
from seedless.studies.engine.figures import DOT, INK, MARK, STAR, make_axes, style_axes
from seedless.studies.engine.grid import Grid, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table
from seedless.studies.shared.headline_arms import EQUAL_KAIMING, FACTOR, make_headline_arms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODEL = "conformer"
WANTED = 0.8
EFFECTS = (0.2, 0.5, 0.8)  # small, medium, large, as Cohen has them
COUNTS = (5, 10, 20, 25, 50, 100, 200)
# As published: class weights, residual scale and head in one arm alone. Then like for like.
AS_PUBLISHED = ("mixed + weights", "kaiming")
EQUAL = EQUAL_KAIMING[MODEL]
PAIRS = (AS_PUBLISHED, ("mixed", EQUAL), ("mixed + weights", f"{EQUAL} + weights"))
PUBLISHED = (0.71, 25)  # power with 20 seeds, and runs per arm for 80 %


def make(options: StudyOptions) -> Grid:
    """Return the conformer's arms of the headline comparison."""
    return make_grid("power", FACTOR, make_headline_arms(options, MODEL))


def find_effect(results: Results, pair: tuple[str, str]) -> tuple[tuple[int, int], Effect | None]:
    """Return how many runs a pair has, and Cohen's d where it is defined."""
    one, other = (list(results.scores(arm, MODEL).values()) for arm in pair)
    try:
        return (len(one), len(other)), cohens_d(one, other)
    except StatsError:
        return (len(one), len(other)), None


def tabulate(results: Results) -> list[Table]:
    """Return power and runs needed at the measured effects, and power by n for fixed effects."""
    rows, values = [], []
    for pair in PAIRS:
        counts, effect = find_effect(results, pair)
        published = f"{PUBLISHED[0]:g}, {PUBLISHED[1]}" if pair == AS_PUBLISHED else ""
        name = f"{pair[0]} - {pair[1]}"
        if effect is None:
            blank = ("", "", "", "", published, "")
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
                published,
                _subtract(power, needed) if published else "",
            )
        )
        values.append({"pair": list(pair), "d": effect.d, "power": power, "needed": needed})
    columns = (
        *("", "n", "d", "its 95 % interval", "power at n", "n for 80 %"),
        *("n for 80 % over the interval", "published", "difference"),
    )
    notes = (
        f"Published, with 20 seeds an arm: power {PUBLISHED[0]:g}, {PUBLISHED[1]} runs an arm for "
        "80 %, where one arm alone had class weights.",
        "Power at the effect found says no more than p does; the interval of d says how little is "
        "known of the runs needed.",
    )
    table = Table("Power at the effect found", columns, tuple(rows), notes, tuple(values))
    return [table, _tabulate_counts(results)]


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
    _, effect = find_effect(results, AS_PUBLISHED)
    effects = {f"{d:g}": d for d in EFFECTS}
    return effects if effect is None else {**effects, f"found, {abs(effect.d):.2f}": abs(effect.d)}


def _subtract(power: float, needed: int | None) -> str:
    """Return power and runs needed, less the published ones."""
    more = "out of reach" if needed is None else f"{needed - PUBLISHED[1]:+d}"
    return f"{power - PUBLISHED[0]:+.2f}, {more}"


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
    figure, axes = make_axes(8.0, 4.6, (0.09, 0.12, 0.87, 0.82))
    counts = range(2, 201)
    colours = (DOT, MARK, INK, STAR)
    for (name, d), colour in zip(list_effects(results).items(), colours, strict=False):
        powers = [find_power(d, count).power for count in counts]
        axes.plot(counts, powers, color=colour, linewidth=1.8, label=f"d {name}")
    axes.axhline(WANTED, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.plot(20, PUBLISHED[0], "D", markerfacecolor="none", color=INK, label="published, n = 20")
    axes.set_xscale("log")
    axes.set_xticks([2, 5, 10, 20, 50, 100, 200], minor=False)
    axes.set_xticklabels(["2", "5", "10", "20", "50", "100", "200"])
    axes.set_xlim(2, 200)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("power, two-sided test at .05", fontsize=9)
    axes.legend(fontsize=8, loc="upper left", framealpha=1, edgecolor="none")
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
