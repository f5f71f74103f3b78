"""What a study is: a question, a grid of runs, a table and a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seedless.core.errors import StatsError, StudyError
from seedless.core.registry import choose
from seedless.stats.compare import Row, compare_samples
from seedless.stats.equivalence import Equivalence
from seedless.stats.multiple import holm
from seedless.studies.engine.grid import Grid, Point
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import MEASURES, Results, describe_varying_seeds, read_score
from seedless.studies.engine.store import Store
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    Table,
    format_mean,
    format_published,
    list_published_values,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Settings that only some studies have a use for, and the options that give them.
SPECIAL = {"folds": "--folds", "other": "--other", "noise": "--noise-path", "prove": "--prove"}

# What a study is about: not to be set from outside, or its arms would not be what they are called.
DECIDED = ("init", "order.name", "order.seed", "model.name", "data", "execution.device", "control")


@dataclass(frozen=True)
class Study:
    """A published experiment.

    Attributes:
        question: what it asks, in a sentence.
        make: returns the runs at a scale on some data.
        tabulate: returns the tables, from what the runs came to.
        draw: returns the figure.
        takes: which of the settings in `SPECIAL` it has a use for; the rest are refused.
    """

    name: str
    question: str
    make: Callable[[StudyOptions], Grid]
    tabulate: Callable[[Results], Sequence[Table]]
    draw: Callable[[Results], Figure]
    takes: tuple[str, ...] = ()

    def plan(self, options: StudyOptions) -> Grid:
        """Return its runs, or refuse a setting that would change nothing."""
        for name, option in SPECIAL.items():
            if getattr(options, name) and name not in self.takes:
                raise StudyError(f"{option} has no meaning for the study {self.name}: leave it out")
        for change in options.changes:
            key = change.partition("=")[0].strip()
            if any(key == name or key.startswith(f"{name}.") for name in DECIDED):
                raise StudyError(
                    f"--set {change}: a study decides {key} itself; what can be set is how its "
                    "runs are trained, such as train.epochs or execution.precision"
                )
        return choose_arms(self.make(options), options.arms)


def choose_arms(grid: Grid, arms: Sequence[str]) -> Grid:
    """Return the grid with these arms alone; with none named, as it is."""
    if not arms:
        return grid
    if not grid.points:
        raise StudyError(f"--arms: the study {grid.study} makes no runs: leave it out")
    for arm in arms:
        choose("arm", arm, dict.fromkeys(grid.arms))
    return replace(grid, points=tuple(point for point in grid.points if point.arm in arms))


def seed_points(
    arm: str,
    count: int,
    build: Callable[[int], Any],
    block: str = "",
) -> list[Point]:
    """Return ``count`` replicates of an arm, "seed 0" and so on."""
    return [Point(arm, f"seed {seed}", build(seed), block) for seed in range(count)]


def tabulate_arms(
    title: str,
    results: Results,
    published: Mapping[tuple[str, str], Published] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Return a row an arm: how many runs, their mean and SD, the published value, the difference.

    Runs that failed or ended at chance are counted beside the mean, which holds all finished ones.
    """
    rows, values = [], []
    for block in results.grid.blocks:
        for arm in dict.fromkeys(p.arm for p in results.grid.points if p.block == block):
            scores = list(results.scores(arm, block).values())
            runs, failed, chance = results.count(arm, block)
            known = (published or {}).get((block, arm))
            mean = sum(scores) / len(scores) if scores else None
            rows.append(
                (
                    " / ".join(part for part in (block, arm) if part),
                    str(runs),
                    str(failed),
                    str(chance),
                    describe_varying_seeds(results.grid.of(arm, block)),
                    format_mean(scores),
                    *format_published(known, mean),
                )
            )
            values.append(
                {
                    "block": block,
                    "arm": arm,
                    "runs": runs,
                    "failed": failed,
                    "at_chance": chance,
                    "scores": results.scores(arm, block),
                    "mean": mean,
                    **list_published_values(known, mean),
                }
            )
    score = f"{MEASURES[results.measure]}, test"
    columns = ("", "runs", "failed", "at chance", "seeds vary in", score)
    return Table(title, (*columns, *PUBLISHED_COLUMNS), tuple(rows), tuple(notes), tuple(values))


def tabulate_progress(grid: Grid, store: Store) -> Table:
    """Return a row an arm: how many of its runs are there, and what those came to."""
    rows = []
    for block in grid.blocks:
        for arm in dict.fromkeys(p.arm for p in grid.points if p.block == block):
            points = grid.of(arm, block)
            states = [store.state(point) for point in points]
            done = [p for p, state in zip(points, states, strict=True) if state == "done"]
            scores = [read_score(store.read(point).metrics or {}) for point in done]
            rows.append(
                (
                    " / ".join(part for part in (block, arm) if part),
                    str(len(points)),
                    str(len(done)),
                    str(states.count("failed")),
                    format_mean([score for score in scores if score is not None]),
                )
            )
    columns = ("", "runs", "done", "failed", "macro AUC of each run so far, test")
    note = (
        "Not finished: a table of what is there, with nothing compared. The same command goes on."
    )
    return Table("How far it is", columns, tuple(rows), (note,))


def compare_arms(
    title: str,
    results: Results,
    pairs: Sequence[tuple[str, str, str]],
    *,
    margin: float | None = None,
    of: str | None = None,
) -> Table:
    """Return a row a pair (block, arm, other arm): Welch, paired, d with its interval, power.

    Runs at chance stay in: what is left out of a comparison is a choice for `seedless compare`.
    Holm's correction is over the rows of this table.
    """
    found: list[tuple[str, str, str, Row | None, str]] = []
    for block, one, other in pairs:
        a, b = results.scores(one, block, of=of), results.scores(other, block, of=of)
        if not a and not b:
            continue
        both = [name for name in a if name in b]
        matched = ([a[n] for n in both], [b[n] for n in both]) if len(both) > 1 else None
        try:
            result = compare_samples(
                list(a.values()),
                list(b.values()),
                names=(one, other),
                pairs=matched,
                margin=margin,
            )
        except StatsError as error:
            found.append((block, one, other, None, str(error)))
        else:
            found.append((block, one, other, result, ""))
    p_values = {
        f"{block}/{one}/{other}": row.welch.p
        for block, one, other, row, _ in found
        if row is not None and row.welch is not None
    }
    adjusted = dict(holm(p_values).adjusted) if p_values else {}
    rows = []
    for block, one, other, row, refusal in found:
        name = f"{block}: {one} - {other}" if block else f"{one} - {other}"
        if row is None or row.welch is None or row.effect is None:
            why = refusal or "; ".join(row.undefined if row is not None else ())
            blank = [""] * (5 if margin is None else 7)
            rows.append((name, f"not tested: {why}", *blank))
            continue
        rows.append(
            (
                name,
                f"{row.a.n}, {row.b.n}",
                f"{row.a.mean - row.b.mean:+.4f}",
                f"{row.welch.p:.3g}",
                f"{adjusted[f'{block}/{one}/{other}']:.3g}",
                "" if row.paired is None else f"{row.paired.p:.3g}",
                f"{row.effect.d:+.2f}",
                *(
                    []
                    if margin is None
                    else map(_show_p, (row.equivalence, row.paired_equivalence))
                ),
            )
        )
    last = () if margin is None else (f"TOST p, ± {margin:g}", "paired TOST p")
    columns = ("", "n", "difference", "Welch p", "Holm", "paired p", "d", *last)
    values = tuple(
        {"block": block, "arms": [one, other], "row": None if row is None else row.as_values()}
        for block, one, other, row, _ in found
    )
    return Table(title, columns, tuple(rows), (), values)


def _show_p(test: Equivalence | None) -> str:
    return "" if test is None else f"{test.p:.3g}"
