"""Execute two recorded loops again, by the commands they were started with, to find the operation.

Each command runs in a copy of the folder it was started in, under the recorder of scripts, up to
the first step that differs. Its trail is written elsewhere and compared with the recorded one.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.audit.doctor.case import Case
from seedless.audit.doctor.diagnosis import (
    Diagnosis,
    add_evidence,
    list_candidates,
    make_diagnosis,
)
from seedless.audit.doctor.op_pass import record_step
from seedless.audit.doctor.pair import Pair, Runner, Variables, compare
from seedless.audit.doctor.run_outcome import explain_missing_steps
from seedless.audit.doctor.working_copy import copy_working_folder, move_command
from seedless.audit.loop_comparison import compare_loops
from seedless.core.errors import RunError
from seedless.numerics.environment import VARIABLES
from seedless.proof.loop_lines import read_loop_trail
from seedless.proof.recorded_loop import FOLDER_VARIABLE, START_VARIABLES, UNTIL_VARIABLE
from seedless.proof.trail import TrailEntry
from seedless.script_recorder.settings import Settings


@dataclass(frozen=True)
class LoopCommand:
    """How a recorded loop was started.

    Attributes:
        path: the folder of its trail.
        trail: its lines.
        argv: program and arguments.
        cwd: the folder it was started in.
        variables: those it had that change bits or lead to its code; None for one it did not have.
    """

    path: Path
    trail: Sequence[TrailEntry]
    argv: tuple[str, ...]
    cwd: Path
    variables: Mapping[str, str | None]


@dataclass(frozen=True)
class LoopLocation:
    """What executing two loops again showed.

    Attributes:
        diagnosis: what differs first, and why; None where the two agree now.
        reproduced: for each loop, whether it gave the lines of its trail again.
        notes: what was otherwise than recorded.
    """

    diagnosis: Diagnosis | None
    reproduced: tuple[bool, ...]
    notes: tuple[str, ...]


def read_command(path: Path, trail: Sequence[TrailEntry]) -> LoopCommand:
    """Return the command in line 0 of a recorded loop; raise RunError where it cannot be run."""
    start = trail[0]
    command = start.get("command")
    if not isinstance(command, dict):
        raise RunError(
            f"{path} does not say how it was started: it was recorded by a run of its "
            "own, or by an earlier version; record it again"
        )
    if start.get("world_size") != 1:
        raise RunError(
            f"{path} was recorded by {start.get('world_size')} processes, which cannot be started "
            "from here: use `seedless doctor -- ` and the command that starts all of them"
        )
    argv, variables = command.get("argv"), command.get("variables")
    program, cwd = (str(command.get(name, "")) for name in ("executable", "cwd"))
    recorded = {
        **start["environment"]["variables"],
        **(variables if isinstance(variables, dict) else {}),
    }
    kept = {name: recorded[name] for name in (*VARIABLES, *START_VARIABLES) if name in recorded}
    words = argv if isinstance(argv, list) else []
    texts = [*words, program, cwd, *kept.values()]
    if not words or not all(isinstance(text, str) and "\0" not in text for text in texts):
        raise RunError(f"{path}: line 1 of its trail does not hold a command")
    if not Path(program).is_file() or not Path(cwd).is_dir():
        raise RunError(f"{path} was started by {program} in {cwd}, which is not here any more")
    return LoopCommand(
        path.absolute(),
        trail,
        (program, *words[1:]),
        Path(cwd),
        {**dict.fromkeys(VARIABLES), **kept},
    )


def execute_loops(
    one: LoopCommand, two: LoopCommand, step: int, report: Callable[[str], None]
) -> LoopLocation:
    """Execute two loops again up to a step, and find the first operation that differs.

    Args:
        one: a loop.
        two: the other.
        step: the first step of their trails that differs.
        report: is called with a line that says what is executed now.
    """
    with TemporaryDirectory(prefix="seedless-") as folder:
        # [Step 1] Execute both up to the step, and compare them with their own trails.
        runner = _LoopRunner(one.argv, Path(folder), report=report, loops=(one, two), until=step)
        pair = runner.run_pair(f"up to step {step}")
        for run, loop in ((pair.a, one), (pair.b, two)):
            if not run.recorded.training:
                raise RunError(explain_missing_steps(run, loop.argv))
        notes = [
            note
            for run, loop in ((pair.a, one), (pair.b, two))
            if (note := _compare_with_trail(run.execution.folder, loop, step))
        ]
        reproduced = tuple(not any(str(loop.path) in note for note in notes) for loop in (one, two))
        if pair.first is None:
            notes.append(f"executed again, the two loops agree through step {step}")
            return LoopLocation(None, reproduced, tuple(notes))
        # [Step 2] Record the operations of that step, and ask the rules for its cause.
        passed = record_step(runner, Case((pair.a.recorded, pair.b.recorded), pair.first))
        candidates = list_candidates(passed.case)
        diagnosis = make_diagnosis(passed.case, candidates[0] if candidates else None)
        if passed.note:
            diagnosis = add_evidence(diagnosis, passed.note)
        return LoopLocation(
            replace(diagnosis, intermittent=passed.intermittent), reproduced, tuple(notes)
        )


@dataclass(frozen=True)
class _LoopRunner(Runner):
    """Runs the commands of two loops as a pair, each in a fresh copy of its folder."""

    loops: tuple[LoopCommand, ...] = ()
    until: int = 0

    def run_pair(
        self,
        title: str,
        settings: Settings | None = None,
        variables: Variables | None = None,
        **options: Any,
    ) -> Pair:
        """Run both commands and compare; ``title`` says what for."""
        runs = []
        for loop in self.loops:
            with TemporaryDirectory(prefix="seedless-", dir=self.folder) as place:
                copy = copy_working_folder(loop.cwd, Path(place) / "copy")
                _remove_results(loop, copy)
                trails = self.folder / f"trails-{len([*self.folder.glob('trails-*')])}"
                changes = {
                    **loop.variables,
                    FOLDER_VARIABLE: str(trails),
                    UNTIL_VARIABLE: str(self.until),
                }
                run = self.run(
                    f"{loop.path.name} {title}: {' '.join(loop.argv)} in a copy of {loop.cwd}",
                    settings,
                    {**changes, **(variables or {})},
                    command=move_command(loop.argv, loop.cwd, copy),
                    cwd=copy,
                )
            if trails.exists():
                trails.rename(run.execution.folder / "trails")
            runs.append(run)
        return compare(*runs)


def _remove_results(loop: LoopCommand, copy: Path) -> None:
    """Remove the folder of the trail from a copy, so that the script does not resume from it.

    A loop whose trail begins with a later step did resume: its checkpoint may be there.
    """
    if loop.trail[1]["step"] > 1 or not loop.path.is_relative_to(loop.cwd):
        return
    inside = copy / loop.path.relative_to(loop.cwd)
    if inside != copy:
        shutil.rmtree(inside, ignore_errors=True)


def _compare_with_trail(folder: Path, loop: LoopCommand, step: int) -> str:
    """Return a sentence where a loop executed again does not give the lines of its trail."""
    found = [path.parent for path in folder.glob("trails/*/trail.jsonl")]
    if len(found) != 1:
        return f"{loop.path} wrote {len(found)} trails when it was executed again, expected one"
    executed = read_loop_trail(found[0])
    recorded = [loop.trail[0], *(line for line in loop.trail[1:] if line["step"] <= step)]
    if len(executed) < 2:
        return f"{loop.path} recorded no step when it was executed again"
    difference, _ = compare_loops({0: recorded}, {0: executed})
    if difference is None:
        return ""
    place = "before the first step" if difference.step is None else f"at step {difference.step}"
    return (
        f"{loop.path} does not repeat: executed again, it differs from its own trail {place}, so "
        "something outside its command changed it (a seed, a file, another machine)"
    )
