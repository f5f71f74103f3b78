"""The two sides of a comparison, and what it found."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.audit.difference_text import describe_difference
from seedless.audit.first_difference import Finding, TensorDifference
from seedless.audit.loop_comparison import RankedTrails
from seedless.core.config import Config
from seedless.core.display import escape_text
from seedless.core.errors import RunError
from seedless.core.mismatch import Mismatch
from seedless.proof.loop_lines import read_loop
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.run_files import check_run_files
from seedless.proof.trail import TrailEntry, read_trail
from seedless.runs.folder import CONFIG, read_config
from seedless.runs.script_run import is_script_run, open_script
from seedless.runs.validation import open_validated
from seedless.train.checkpoint import list_checkpoints

if TYPE_CHECKING:
    from seedless.audit.doctor.diagnosis import Diagnosis


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two runs: a folder with a trail, and its configuration if it has one.

    Attributes:
        loop: for a recorded loop, the trails of all its processes.
    """

    path: Path
    trail: Sequence[TrailEntry]
    config: Config | None
    entry: str | None = None
    data: str | None = None
    loop: RankedTrails | None = None

    @property
    def ranks(self) -> RankedTrails:
        """The trails of all processes: those of a recorded loop, or the one of a run."""
        return {0: self.trail} if self.loop is None else self.loop

    @property
    def checkpoints(self) -> set[int]:
        """The epochs that it has a checkpoint of."""
        return {position.epoch for position, _ in list_checkpoints(self.path) if not position.batch}


@dataclass(frozen=True, repr=False)
class Difference:
    """What two runs have in common, and where they begin to differ.

    Attributes:
        identical: whether no entry of the trails differs.
        settings, environment, facts: fields that differ: of the configurations, of the machines,
            and of data, source, initialization and model.
        epoch: the first epoch whose entry differs, 0 for the state before the first step. For a
            recorded loop, the epoch that it gave with the step, or None.
        names: what differs there: tensors, and "schedule", "loss", "score", "step", "length".
        step: the first step of that epoch after which the states differ, if it was executed again.
            For a recorded loop, the first step that differs; None before the first step.
        step_names: the tensors that differ after that step.
        reproduced: for each run, whether executing it again gave what its trail recorded.
        finding: the first op that differs, if it was located.
        tensors: what differs already before that step, element by element.
        notes: what could not be done, and why.
        recorded_loop: whether one of the two is a recorded loop: then the lines were compared by
            step.
        ranks: the processes of a recorded loop in which that step differs.
        diagnosis: for recorded loops that were executed again, what differs first, and why. Its
            step counts the steps of the optimizers.
    """

    identical: bool
    settings: tuple[Mismatch, ...] = ()
    environment: tuple[Mismatch, ...] = ()
    facts: tuple[Mismatch, ...] = ()
    epoch: int | None = None
    names: tuple[str, ...] = ()
    step: int | None = None
    step_names: tuple[str, ...] = ()
    reproduced: tuple[bool, ...] = ()
    finding: Finding | None = None
    tensors: tuple[TensorDifference, ...] = ()
    notes: tuple[str, ...] = ()
    recorded_loop: bool = False
    ranks: tuple[int, ...] = ()
    diagnosis: "Diagnosis | None" = None

    def __repr__(self) -> str:
        """The lines of `seedless diff`, which a notebook shows."""
        return "\n".join(map(escape_text, describe_difference(self)))


def open_side(path: Path, entry: str | None, data: str | None) -> Side:
    """Read a run folder, or the folder of a recorded loop.

    A finished run is validated. Of an unfinished one the chain of the trail is checked.
    """
    config: Config | None = None
    loop: RankedTrails | None = None
    if is_script_run(path):
        loop = dict(enumerate(open_script(path).trails))
        trail = loop[0]
    elif os.path.lexists(path / RECEIPT):
        opened = open_validated(path)
        if opened.left_out:
            raise RunError(f"{path} is a stripped run, without its trail: nothing can be compared")
        trail, config = opened.trail, opened.config
    elif os.path.lexists(path / CONFIG):
        if added := check_run_files(path, finished=False):
            raise RunError(f"{path} holds something that no run wrote: {added[0]}")
        trail, config = read_trail(path, allow_incomplete=True), read_config(path)
    else:
        loop = read_loop(path)
        trail = loop[min(loop)]
    for lines in (loop or {0: trail}).values():
        if len(lines) < 2:
            raise RunError(f"{path} has an empty trail: no step was recorded, nothing to compare")
    environment = trail[0].get("environment")
    if not isinstance(environment, dict) or not isinstance(environment.get("variables"), dict):
        raise RunError(f"{path}: line 1 of its trail does not say in what environment it began")
    return Side(path, trail, config, entry, data, loop)
