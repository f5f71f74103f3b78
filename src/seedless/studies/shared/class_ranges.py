"""Ranges over seeds, class by class: how far apart the AUCs of an arm's runs are.

The AUC of a rare class rests on few positives, so each row names their number.
"""

from collections.abc import Sequence
from typing import Any

from seedless.core.errors import StatsError
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.stats.spread import Range, find_range
from seedless.studies.engine.results import Results, describe_varying_seeds
from seedless.studies.engine.table import Table

# Published ranges over 20 seeds in percentage points, of these two arms.
PUBLISHED_ARMS = ("kaiming", "mixed")
PUBLISHED = {"TRIGU": (30.9, 4.1), "SVARR": (20.2, 11.5), "SARRH": (4.2, 2.5)}
# Published for images: in how many classes the structured arm has the smaller range, of how many.
PUBLISHED_TIGHTER = {("chestmnist", "kaiming_normal", "dct"): (11, 14)}


def tabulate_ranges(results: Results, arms: tuple[str, str], block: str | None = None) -> Table:
    """Return one row per class: positives, the range of each arm with its interval, their ratio.

    ``arms``: the random and the structured one.
    """
    random, structured = arms
    classes, same_scores = results.classes(block), ""
    if len(classes) == 2 and _have_equal_scores(results, arms, block):
        same_scores = f" {list(classes)[1]} has the same AUCs, being the only other class."
        classes = dict(list(classes.items())[:1])
    rows: list[tuple[str, ...]] = []
    values: list[dict[str, Any]] = []
    for name, positives in classes.items():
        scores = [list(results.scores(arm, block, class_name=name).values()) for arm in arms]
        try:
            if not any(scores):
                raise StatsError("too few positives to score" if positives else "no positives")
            wide, narrow = map(find_range, scores)
        except StatsError as error:
            rows.append((name, str(positives), f"not defined: {error}", "", "", "", ""))
            continue
        known = PUBLISHED.get(name) if arms == PUBLISHED_ARMS else None
        rows.append(_format_class(results, name, positives, wide, narrow, known))
        ranges = [wide.range, narrow.range]
        values.append({"class": name, "positives": positives, "ranges": ranges})
    tighter = sum(one["ranges"][1] < one["ranges"][0] for one in values)
    share = f"{tighter} of {len(values)} class{'es' * (len(values) != 1)}"
    tighter_known = PUBLISHED_TIGHTER.get((block or "", *arms))
    published = "" if tighter_known is None else " Published: {} of {}.".format(*tighter_known)
    varying = [describe_varying_seeds(results.grid.points_of(arm, block)) for arm in arms]
    unequal = " More varies in one arm than in the other: the ranges do not compare the starts."
    notes = (
        f"{structured} is tighter in {share}, sign test p {_test_signs(values)}.{same_scores}"
        f"{published}",
        f"Seeds vary in {varying[0]} ({random}), in {varying[1]} ({structured})."
        f"{unequal if varying[0] != varying[1] else ''}",
        f"Ranges in percentage points with their 95 % interval; (few): under {FEW_POSITIVES} "
        "positives. No interval was published.",
    )
    columns = (
        *("class", "positives", f"range, {random}", f"range, {structured}", "ratio"),
        *("published", "difference"),
    )
    title = f"Range over seeds by class{f', {block}' if block else ''}, {structured} and {random}"
    return Table(title, columns, tuple(rows), notes, tuple(values))


def _test_signs(values: Sequence[dict[str, Any]]) -> str:
    """Return the two-sided p of "either arm is as likely to be tighter", over untied classes."""
    from scipy.stats import binomtest

    signs = [one["ranges"][1] < one["ranges"][0] for one in values if len(set(one["ranges"])) > 1]
    return f"{binomtest(sum(signs), len(signs)).pvalue:.2g}" if signs else "not defined"


def _format_class(
    results: Results,
    name: str,
    positives: int,
    wide: Range,
    narrow: Range,
    known: tuple[float, float] | None,
) -> tuple[str, ...]:
    """Return the row of a class, with the published ranges where there are any."""
    return (
        name + (" (few)" if positives < FEW_POSITIVES else ""),
        str(positives),
        _format_range(wide),
        _format_range(narrow),
        f"{wide.range / narrow.range:.2f}" if narrow.range else "-",
        "" if known is None else f"{known[0]} -> {known[1]}",
        _subtract((wide, narrow), known) if known and results.options.as_published else "",
    )


def _have_equal_scores(results: Results, arms: Sequence[str], block: str | None) -> bool:
    """Return whether two classes have the same AUCs, because a record is of one or of the other."""
    one, other = (
        [results.scores(arm, block, class_name=name) for arm in arms]
        for name in results.classes(block)
    )
    return one == other


def _format_range(spread: Range) -> str:
    # The interval supposes normal scores: with few runs it ends beyond the largest range of an AUC.
    low, high = (min(end, 1.0) for end in spread.interval)
    return f"{100 * spread.range:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _subtract(ranges: tuple[Range, Range], known: tuple[float, float]) -> str:
    """Return both ranges minus the published ones, in percentage points."""
    gaps = (100 * one.range - value for one, value in zip(ranges, known, strict=True))
    return " -> ".join(f"{gap:+.1f}" for gap in gaps)
