"""A study: a question, a grid of runs, what is measured on them, tables and a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seedless.core.errors import StudyError
from seedless.core.registry import choose
from seedless.studies.engine.grid import Grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Options that only some studies use: their names on the command line, and their values if unused.
SPECIAL: dict[str, tuple[str, Any]] = {
    "folds": ("--folds", None),
    "other": ("--other", ()),
    "noise": ("--noise-path", None),
    "prove": ("--prove", False),
}

# Settings that a study decides itself: changed from outside, its arms would not be what their names
# say.
DECIDED = (
    *("init", "order.name", "order.seed", "order.offset", "model.name", "data"),
    *("execution.device", "control"),
)


@dataclass(frozen=True)
class Study:
    """A published experiment.

    Attributes:
        name: its name on the command line.
        question: the question it answers, in one sentence.
        make: returns the grid for some options.
        tabulate: returns the tables from the results, without computing on runs again.
        draw: returns the figure from the results.
        takes: the options of `SPECIAL` that it uses; it refuses the others.
        measure: returns what the tables and the figure need besides the scores of the runs, such as
            scores on other data. It may take long and start processes; it is called once.
    """

    name: str
    question: str
    make: Callable[[StudyOptions], Grid]
    tabulate: Callable[[Results], Sequence[Table]]
    draw: Callable[[Results], Figure]
    takes: tuple[str, ...] = ()
    measure: Callable[[Results], Any] = lambda _: None

    def plan(self, options: StudyOptions) -> Plan:
        """Return its runs for these options; an option that would change nothing is refused.

        Example: ``open_study("basis").plan(StudyOptions(scale="smoke", seeds=3))``
        """
        for field, (flag, unused) in SPECIAL.items():
            if getattr(options, field) != unused and field not in self.takes:
                raise StudyError(f"{flag} has no meaning for the study {self.name}: leave it out")
        for change in options.changes:
            key = change.partition("=")[0].strip()
            if any(key == name or key.startswith(f"{name}.") for name in DECIDED):
                raise StudyError(
                    f"--set {change}: a study decides {key} itself; what can be set is how its "
                    "runs are trained, such as train.epochs or execution.precision"
                )
        return Plan(self, options, choose_arms(self.make(options), options.arms))

    def drop_unused(self, options: StudyOptions) -> StudyOptions:
        """Return the options without those that this study does not use."""
        unused = {name: value for name, (_, value) in SPECIAL.items() if name not in self.takes}
        return replace(options, **unused)


@dataclass(frozen=True)
class Plan:
    """A study with its options and the grid that follows from them; nothing was executed yet."""

    study: Study
    options: StudyOptions
    grid: Grid


def choose_arms(grid: Grid, arms: Sequence[str]) -> Grid:
    """Return the grid with only these arms; without any name, the grid itself."""
    if not arms:
        return grid
    if not grid.points:
        raise StudyError(f"--arms: the study {grid.study} has no runs: leave it out")
    for arm in arms:
        choose("arm", arm, dict.fromkeys(grid.arms))
    return replace(grid, points=tuple(point for point in grid.points if point.arm in arms))
