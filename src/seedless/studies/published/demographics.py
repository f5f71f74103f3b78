"""The same model for women and men, young and old: scores of the test records, group by group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seedless.analysis.evaluation import ATTRIBUTES, evaluate
from seedless.core.display import escape_plot_text
from seedless.core.errors import DataError, StatsError
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.evaluate.subgroup import Rate, Subgroups
from seedless.stats.permutation import flip_signs
from seedless.studies.engine.figures import DOT, MARK, make_axes, style_axes
from seedless.studies.engine.grid import Grid, Point, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.store import Outcome
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARM, FREE = "mixed", "seed-free"
FEW = 2  # a class is compared where both groups have more positives, as published
PUBLISHED = (0.85, 9)  # p over so many classes, 20 seeds
PAIRED, PAIR = "sex", ("F", "M")


def make(options: StudyOptions) -> Grid:
    """Return one seed-free run, and the mixed runs of the study `basis`."""
    free = Point(ARM, FREE, options.ecg_run(ARM, None), FREE)
    points = [free, *seed_points((ARM,), options.count, options.ecg_run)]
    return make_grid("demographics", (), points)


def measure(results: Results) -> dict[tuple[Path, str], Subgroups | str]:
    """Return the scores of each run by sex, and of the seed-free run by age, or why there are none.

    Keys are (run folder, attribute).
    """
    return {
        (one.run, by): score_groups(one, by)
        for one in results.outcomes
        for by in ATTRIBUTES
        if by == PAIRED or one.point.block == FREE
    }


def score_groups(one: Outcome, by: str) -> Subgroups | str:
    """Return the scores of a run by group, or why there are none."""
    if not one.ok:
        return one.error or "it failed"
    try:
        groups = evaluate(one.run, by=by).subgroups
    except DataError as error:
        return str(error)
    assert groups is not None
    return groups


def tabulate(results: Results) -> list[Table]:
    """Return the groups of the seed-free run, its classes by sex, and the test over classes."""
    return [
        *(tabulate_groups(results, by) for by in ATTRIBUTES),
        tabulate_classes(results),
        test_classes(results),
    ]


def find_seed_free(results: Results, by: str) -> Subgroups | str:
    """Return the groups of the seed-free run, or why there are none."""
    (one,) = results.outcomes_of(ARM, FREE)
    if not one.ok:
        return f"the seed-free run failed: {one.error}"
    groups: Subgroups | str = results.measured[one.run, by]
    return groups


def tabulate_groups(results: Results, by: str) -> Table:
    """Return one row per group: records, macro AUC, and its difference from the largest group."""
    groups = find_seed_free(results, by)
    columns = (by, "records", "macro AUC", "minus the largest group")
    title = f"The seed-free run by {by}, test records"
    if isinstance(groups, str):
        return Table(title, columns, ((f"not compared: {groups}", "", "", ""),))
    rows = [
        (name, str(group.n), _show(group.macro_auc), _show(group.macro_auc_difference, "+"))
        for name, group in groups.groups.items()
    ]
    if groups.unknown:
        rows.append(("unknown", str(groups.unknown), "", ""))
    notes = (
        f"The largest group is {groups.reference}. Intervals of 95 %.",
        "Macro AUCs are compared only where both groups have every class.",
    )
    return Table(title, columns, tuple(rows), notes, (groups.as_dict(),))


def tabulate_classes(results: Results) -> Table:
    """Return one row per class: positives and AUC of women and men."""
    groups = find_seed_free(results, PAIRED)
    columns = ("class", "positives, F", "AUC, F", "positives, M", "AUC, M", "compared")
    title = "The seed-free run by class and sex"
    if isinstance(groups, str) or not set(PAIR) <= set(groups.groups):
        why = groups if isinstance(groups, str) else "the test records are of one sex"
        return Table(title, columns, ((f"not compared: {why}", "", "", "", "", ""),))
    women, men = (groups.groups[sex].classes for sex in PAIR)
    rows = []
    for name, one in women.items():
        other = men[name]
        few = " (few)" if min(one.positives, other.positives) < FEW_POSITIVES else ""
        rows.append(
            (
                f"{name}{few}",
                str(one.positives),
                _show(one.auc),
                str(other.positives),
                _show(other.auc),
                "yes" if min(one.positives, other.positives) > FEW else "no",
            )
        )
    note = f"(few): under {FEW_POSITIVES} positives in a group. Compared: more than {FEW} in both."
    return Table(title, columns, tuple(rows), (note,))


def find_pairs(results: Results, block: str) -> dict[str, tuple[float, float]]:
    """Return for each class that can be compared its AUC in women and men, mean over runs."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for one in results.outcomes_of(ARM, block):
        groups = results.measured[one.run, PAIRED]
        if isinstance(groups, str) or not set(PAIR) <= set(groups.groups):
            continue
        women, men = (groups.groups[sex].classes for sex in PAIR)
        for name, member in women.items():
            a, b = member.auc.value, men[name].auc.value
            enough = min(member.positives, men[name].positives) > FEW
            if enough and a is not None and b is not None:
                pairs.setdefault(name, []).append((a, b))
    return {
        name: (sum(a for a, _ in areas) / len(areas), sum(b for _, b in areas) / len(areas))
        for name, areas in pairs.items()
    }


def explain_few(results: Results, block: str, pairs: int) -> str:
    """Return why there are too few classes to test over."""
    for one in results.outcomes_of(ARM, block):
        groups = results.measured[one.run, PAIRED]
        if isinstance(groups, str):
            return f"not tested: {groups}"
        if not set(PAIR) <= set(groups.groups):
            return "not tested: the test records are of one sex"
        sizes = " and ".join(f"{groups.groups[sex].n} {sex}" for sex in PAIR)
        return (
            f"not tested: of {sizes} test records {pairs} classes have more than {FEW} positives "
            "in both, and a test over classes needs two: take more records, --scale small or paper"
        )
    return "not tested: no run was finished"


def test_classes(results: Results) -> Table:
    """Return a permutation test: in each class the sexes could have been swapped."""
    rows = []
    published = f"{PUBLISHED[0]:g} ({PUBLISHED[1]} classes)"
    for name, block in (("seed-free run", FREE), ("mean over seeds", "")):
        pairs = find_pairs(results, block)
        a, b = [one for one, _ in pairs.values()], [other for _, other in pairs.values()]
        known = published if block == "" else ""
        if len(pairs) < 2:
            why = explain_few(results, block, len(pairs))
            rows.append((name, str(len(pairs)), "", "", known, why))
            continue
        try:
            result = flip_signs(a, b)
        except StatsError as error:
            rows.append((name, str(len(pairs)), "", "", known, f"not tested: {error}"))
            continue
        numbers = (f"{result.difference:+.4f}", f"{result.p:.3g}")
        rows.append((name, str(len(pairs)), *numbers, known, result.sentence))
    columns = ("", "classes", "AUC, F minus M", "p", "published p", "in words")
    note = f"Classes with more than {FEW} positives in both sexes, each a pair."
    return Table("Do the sexes differ? A permutation test", columns, tuple(rows), (note,))


def _show(rate: Rate, sign: str = "") -> str:
    if rate.value is None:
        return "-"
    if rate.interval is None:
        return f"{rate.value:{sign}.3f}"
    low, high = rate.interval.as_list()
    return f"{rate.value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def draw(results: Results) -> Figure:
    """Return every group's macro AUC with its interval, by sex and by age."""
    measured = [(by, find_seed_free(results, by)) for by in ATTRIBUTES]
    rows = [
        (f"{by} {name} (n = {group.n})", group.macro_auc, colour)
        for (by, groups), colour in zip(measured, (DOT, MARK), strict=True)
        if not isinstance(groups, str)
        for name, group in groups.groups.items()
    ]
    height = 1.3 + 0.34 * max(1, len(rows))
    figure, axes = make_axes(8.0, height, (0.24, 0.75 / height, 0.72, 1 - 1.15 / height))
    for place, (_, rate, colour) in enumerate(reversed(rows)):
        if rate.value is not None:
            axes.plot(rate.value, place, "o", color=colour)
        if rate.interval is not None:
            axes.plot(rate.interval.as_list(), [place] * 2, color=colour, linewidth=1.2)
    axes.set_yticks(range(len(rows)))
    axes.set_yticklabels([escape_plot_text(name) for name, _, _ in reversed(rows)], fontsize=8)
    axes.set_ylim(-0.7, max(1, len(rows)) - 0.3)
    style_axes(figure, axes, "Test macro AUC of the seed-free run, 95 % interval")
    return figure


STUDY = Study(
    "demographics",
    "Does a model answer as well for women as for men, and for every age?",
    make,
    tabulate,
    draw,
    measure=measure,
)
