"""Tables that most studies have: scores by arm, arms compared in pairs, and progress so far."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedless.core.errors import StatsError, StudyError
from seedless.stats.compare import Row, compare_samples
from seedless.stats.equivalence import Equivalence
from seedless.stats.group_tests import Friedman, Levene, levene
from seedless.stats.holm_correction import holm
from seedless.studies.engine.grid import Grid
from seedless.studies.engine.results import (
    MEASURES,
    Results,
    describe_varying_seeds,
    read_score,
)
from seedless.studies.engine.store import Store
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    Table,
    compare_with_published,
    format_mean,
    mean_and_sd,
)

Pair = tuple[str, str, str]  # a block, and two of its arms
NOT_COMPARABLE = (
    "Data, networks or training are not the published ones: published values say what was "
    "published, and no difference is computed."
)


def tabulate_arms(
    title: str,
    results: Results,
    published: Mapping[tuple[str, str], Published] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Return one row per arm: number of runs, mean and SD, the published value, the difference.

    Runs that failed or ended at chance have columns of their own. The mean is over all finished
    runs, those at chance included. Where nothing was published, there are no columns for it.
    """
    rows: list[tuple[str, ...]] = []
    values = []
    for block, arm in results.grid.arms_by_block:
        by_replicate = results.scores(arm, block)
        scores = list(by_replicate.values())
        runs, failed, chance = results.count(arm, block)
        known = results.mark_published((published or {}).get((block, arm)))
        cells, numbers = compare_with_published(scores, known)
        rows.append(
            (
                name_arm(block, arm),
                str(runs),
                str(failed),
                str(chance),
                describe_varying_seeds(results.grid.points_of(arm, block)),
                *cells,
            )
        )
        values.append(
            {
                "block": block,
                "arm": arm,
                "runs": runs,
                "failed": failed,
                "at_chance": chance,
                "scores": by_replicate,
                **numbers,
            }
        )
    score = f"{MEASURES[results.measure]}, test"
    columns = ("", "runs", "failed", "at chance", "seeds vary in", score, *PUBLISHED_COLUMNS)
    if published and not results.options.as_published:
        notes = (*notes, NOT_COMPARABLE)
    shown = len(columns) - (len(PUBLISHED_COLUMNS) if published is None else 0)
    shown_rows = tuple(row[:shown] for row in rows)
    return Table(title, columns[:shown], shown_rows, tuple(notes), tuple(values))


def name_arm(block: str, arm: str) -> str:
    """Return the name of an arm in tables and figures."""
    return " / ".join(part for part in (block, arm) if part)


def tabulate_progress(grid: Grid, store: Store) -> Table:
    """Return one row per arm: how many of its runs are done, and their scores so far."""
    rows = []
    for block, arm in grid.arms_by_block:
        points = grid.points_of(arm, block)
        states = [store.state(point) for point in points]
        done = [p for p, state in zip(points, states, strict=True) if state == "done"]
        scores = [read_score(store.read(point).metrics or {}) for point in done]
        rows.append(
            (
                name_arm(block, arm),
                str(len(points)),
                str(len(done)),
                str(states.count("failed")),
                format_mean([score for score in scores if score is not None]),
            )
        )
    columns = ("", "runs", "done", "failed", "macro AUC of each run so far, test")
    note = "Not finished: nothing is compared yet. The same command continues the study."
    return Table("Progress", columns, tuple(rows), (note,))


@dataclass(frozen=True)
class _Comparison:
    """Two arms of a block, and their tests; or why these cannot be computed."""

    block: str
    arms: tuple[str, str]
    row: Row | None
    refusal: str = ""


def compare_arms(
    title: str,
    results: Results,
    pairs: Sequence[Pair],
    *,
    margin: float | None = None,
    as_published: bool = False,
) -> Table:
    """Return one row per pair (block, arm, other arm): Welch's test, a paired test, Cohen's d.

    Runs at chance are included. Holm's correction is over the rows of this table. ``margin`` adds
    two one-sided tests of equivalence within it. A pair that differs in more than one setting is
    refused; ``as_published`` allows it, for comparisons that were published like that.
    """
    compared = []
    for block, one, other in keep_present(results.grid, pairs):
        differences = results.grid.list_differences(block, one, other)
        if len(differences) > 1 and not as_published:
            raise StudyError(
                f"{results.grid.study}: {name_arm(block, one)} and {other} differ in "
                f"{', '.join(differences)}: compare arms that differ in one of them"
            )
        a, b = results.scores(one, block), results.scores(other, block)
        if a or b:
            compared.append(_compare(block, (one, other), a, b, margin))
    # [Step 2] Correct the p-values of all rows together, then write the rows.
    p_values = {
        f"{pair.block}/{pair.arms[0]}/{pair.arms[1]}": pair.row.welch.p
        for pair in compared
        if pair.row is not None and pair.row.welch is not None
    }
    adjusted = dict(holm(p_values).adjusted) if p_values else {}
    last = () if margin is None else (f"TOST p, ± {margin:g}", "paired TOST p")
    columns = ("", "n", "difference", "Welch p", "Holm", "paired p", "d", *last)
    rows = tuple(_format_comparison(pair, adjusted, columns) for pair in compared)
    values = tuple(
        {
            "block": pair.block,
            "arms": list(pair.arms),
            "row": None if pair.row is None else pair.row.as_values(),
        }
        for pair in compared
    )
    return Table(title, columns, rows, (), values)


def keep_present(grid: Grid, pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs of which both arms are in the grid: a user may have chosen some arms."""
    known = grid.arms_by_block
    return [pair for pair in pairs if all((pair[0], arm) in known for arm in pair[1:])]


def _compare(
    block: str,
    arms: tuple[str, str],
    a: Mapping[str, float],
    b: Mapping[str, float],
    margin: float | None,
) -> _Comparison:
    """[Step 1] Compare two arms as independent samples, and the replicates they share as pairs."""
    shared = [name for name in a if name in b]
    matched = ([a[n] for n in shared], [b[n] for n in shared]) if len(shared) > 1 else None
    try:
        row = compare_samples(
            list(a.values()), list(b.values()), names=arms, pairs=matched, margin=margin
        )
    except StatsError as error:
        return _Comparison(block, arms, None, str(error))
    return _Comparison(block, arms, row)


def _format_comparison(
    pair: _Comparison, adjusted: Mapping[str, float], columns: Sequence[str]
) -> tuple[str, ...]:
    row, (one, other) = pair.row, pair.arms
    name = f"{pair.block}: {one} - {other}" if pair.block else f"{one} - {other}"
    if row is None or row.welch is None or row.effect is None:
        why = pair.refusal or "; ".join(row.undefined if row is not None else ())
        return (name, f"not tested: {why}", *[""] * (len(columns) - 2))
    cells = (
        name,
        f"{row.a.n}, {row.b.n}",
        f"{row.a.mean - row.b.mean:+.4f}",
        f"{row.welch.p:.3g}",
        f"{adjusted[f'{pair.block}/{one}/{other}']:.3g}",
        "" if row.paired is None else f"{row.paired.p:.3g}",
        f"{row.effect.d:+.2f}",
        _format_p(row.equivalence),
        _format_p(row.paired_equivalence),
    )
    return cells[: len(columns)]


def tabulate_spreads(title: str, results: Results, pairs: Sequence[Pair]) -> Table:
    """Return one row per pair (block, arm, other arm): both SDs and the test of Brown and Forsythe.

    The test is only fair where the same number of things varies in both arms: each row says what
    does, and a pair in which it differs is shown without a test.
    """
    rows: list[tuple[str, ...]] = []
    values, p_values = [], {}
    for block, *arms in keep_present(results.grid, pairs):
        name = f"{block}: {' - '.join(arms)}" if block else " - ".join(arms)
        varied = [describe_varying_seeds(results.grid.points_of(arm, block)) for arm in arms]
        scores = {arm: list(results.scores(arm, block).values()) for arm in arms}
        sds = [mean_and_sd(one)[1] if len(one) > 1 else None for one in scores.values()]
        shown = [f"{len(scores[arm])}" for arm in arms]
        shown += ["" if sd is None else f"{sd:.4f}" for sd in sds]
        test: dict[str, Any] = {"p": None, "statistic": None}
        if varied[0] != varied[1]:
            said = f"not tested: seeds vary in {varied[0]} and in {varied[1]}"
        else:
            try:
                found = levene(scores)
            except StatsError as error:
                said = f"not tested: {error}"
            else:
                test = {"p": found.p, "statistic": found.statistic}
                p_values[name] = found.p
                said = f"{found.p:.3g}"
        rows.append((name, f"{shown[0]}, {shown[1]}", varied[0], *shown[2:], said))
        values.append({"block": block, "arms": arms, "sds": sds, **test})
    adjusted = dict(holm(p_values).adjusted) if p_values else {}
    columns = ("", "n", "seeds vary in", "SD", "SD of the other", "Brown-Forsythe p", "Holm")
    whole = tuple((*row, f"{adjusted[row[0]]:.3g}" if row[0] in adjusted else "") for row in rows)
    return Table(title, columns, whole, (), tuple(values))


def format_group_test(
    test: Callable[[Mapping[str, Sequence[float]]], Friedman | Levene],
    groups: Mapping[str, Sequence[float]],
) -> tuple[str, str, str]:
    """Return the statistic, p and sentence of a test of groups as cells, or why there are none."""
    try:
        result = test(groups)
    except StatsError as error:
        return "", "", f"not tested: {error}"
    return f"{result.statistic:.3f}", f"{result.p:.3g}", result.sentence


def _format_p(test: Equivalence | None) -> str:
    return "" if test is None else f"{test.p:.3g}"
