"""Run a command twice and compare the two runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from seedless.audit.doctor.command import OUT_WORD, Execution, execute
from seedless.audit.doctor.first_step import FirstStep, find_first_step
from seedless.audit.doctor.recorded_run import RecordedRun, read_run
from seedless.audit.doctor.working_copy import move_command
from seedless.script_recorder.settings import Settings

Variables = Mapping[str, str | None]
FIRST_RUN = "run-1"


@dataclass(frozen=True)
class Run:
    """One run of the command: how it ended, and what it recorded."""

    execution: Execution
    recorded: RecordedRun


@dataclass(frozen=True)
class Pair:
    """Two runs, and where they differ first; None if they agree."""

    a: Run
    b: Run
    first: FirstStep | None

    @property
    def folders(self) -> tuple[Path, Path]:
        """The folders of their records."""
        return self.a.recorded.folder, self.b.recorded.folder


@dataclass(frozen=True)
class Runner:
    """Runs one command as often as it is asked to, each time in a new folder.

    Attributes:
        command: the user's command.
        folder: where the runs are kept.
        steps: how many steps a run makes at most; None for all.
        timeout: seconds that a run may take.
        varied: variables that the second run of a pair has another value of.
        report: is called with a line that says what is done now.
    """

    command: Sequence[str]
    folder: Path
    steps: int | None = None
    timeout: float | None = None
    varied: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    report: Callable[[str], None] = lambda line: None

    def run(
        self,
        title: str,
        settings: Settings | None = None,
        variables: Variables | None = None,
        *,
        command: Sequence[str] | None = None,
        cwd: Path | None = None,
        out: Path | None = None,
    ) -> Run:
        """Run the command once; ``title`` says what for, the others are as for `execute`."""
        chosen = settings or Settings("", end_after=self.steps)
        folder = next(
            path for number in count(1) if not (path := self.folder / f"run-{number}").exists()
        )
        self.report(f"{folder.name}: {title}")
        done = execute(
            command or self.command,
            folder,
            chosen,
            variables=variables,
            timeout=self.timeout,
            cwd=cwd,
            out=out,
        )
        if folder.name == FIRST_RUN:
            self.report(f"{folder.name} took {done.seconds:.1f} s")
        return Run(done, read_run(done.records, {str(out or done.folder / "out"): OUT_WORD}))

    def count_runs(self) -> int:
        """Return how many times the command was run."""
        return sum(1 for path in self.folder.glob("run-*") if path.is_dir())

    def run_pair(
        self,
        title: str,
        settings: Settings | None = None,
        variables: Variables | None = None,
        *,
        vary: bool = True,
        folders: tuple[Path, Path] | None = None,
    ) -> Pair:
        """Run the command twice and compare.

        Args:
            title: what the runs are for.
            settings: what is recorded.
            variables: changes to the environment of both.
            vary: let the varied variables differ; else both runs have the first value.
            folders: copies of the current folder, one for each of the two runs.
        """
        runs = []
        for index in range(2):
            varied = {name: values[index * vary] for name, values in self.varied.items()}
            changes = {**varied, **(variables or {})}
            cwd, command = None, self.command
            if folders is not None:
                cwd = folders[index]
                command = move_command(command, Path.cwd(), cwd)
            label = f"{title}, {index + 1} of 2"
            runs.append(self.run(label, settings, changes, command=command, cwd=cwd))
        return compare(*runs)


def compare(a: Run, b: Run) -> Pair:
    """Return two runs with their first difference."""
    return Pair(a, b, find_first_step(a.recorded, b.recorded))
