"""Where two runs begin to differ: the first epoch and tensors by their trails, then step and op.

    diff: compare settings -> compare trails -> execute the epoch again -> record the step's ops

Each stage narrows the place down: the trails name the epoch, both runs executed again from their
last common checkpoint name the step, and that step recorded op by op names the first op.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import load_file

from seedless.audit.first_difference import (
    Finding,
    TensorDifference,
    compare_tensors,
    find_first_difference,
)
from seedless.audit.loop_comparison import RankedTrails, compare_loops
from seedless.audit.step_trace import STATE
from seedless.audit.worker import run_worker
from seedless.core.config import Config
from seedless.core.errors import ConfigError, RunError
from seedless.core.files import AnyPath
from seedless.core.mismatch import Mismatch, compare_values
from seedless.proof.loop_lines import read_loop
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.run_files import check_run_files
from seedless.proof.trail import TrailEntry, compare_trails, read_trail
from seedless.runs.folder import CONFIG, read_config
from seedless.runs.prepare import USER_MODEL
from seedless.runs.script_run import is_script_run, open_script
from seedless.runs.user_model import ENTRY_HELP
from seedless.runs.validation import open_validated
from seedless.script_recorder.op_record import OpRecord
from seedless.train.checkpoint import list_checkpoints

LOOP_HELP = (
    "a recorded loop cannot be executed again from its trail: record every step to find the step, "
    "and use `seedless doctor` to find the operation"
)


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


@dataclass(frozen=True)
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


def diff(
    a: AnyPath,
    b: AnyPath,
    *,
    replay: bool = True,
    locate: bool = False,
    entry: str | None = None,
    entry_b: str | None = None,
    data: str | None = None,
) -> Difference:
    """Compare two runs and return where they begin to differ.

    Args:
        a: a run folder, finished or not, or the folder of a recorded loop.
        b: the other.
        replay: find the step within the first epoch that differs, by executing that epoch again.
        locate: find the op within that step; both runs are executed again up to it.
            For runs of `fit` both need ``entry``; without it the trails alone are compared.
        entry: for runs of `fit`, "package.module:function" that returns their model and arrays.
        entry_b: the same for the second run, if it is another.
        data: where the data are now, if they were moved.

    Example:
        >>> seedless.diff("runs/a", "runs/b").epoch
    """
    # [Step 1] Compare what the two runs began with, and their trails.
    one = open_side(Path(a), entry, data)
    two = open_side(Path(b), entry_b or entry, data)
    begun = _compare_beginnings(one, two)
    if one.loop is not None or two.loop is not None:
        return _diff_loops(one, two, begun, explain=replay or locate)
    difference = compare_trails(one.trail, two.trail)
    if difference is None:
        return Difference(True, **begun)
    epoch, names = difference
    known: dict[str, Any] = {**begun, "epoch": epoch, "names": tuple(names)}
    if not (replay or locate):
        return Difference(False, **known)
    # [Step 2] Execute both again, if that can say more than the trails.
    if obstacle := _find_obstacle(one, two, epoch, names):
        return Difference(False, **known, notes=(obstacle,))
    if missing := _explain_missing_entry(one, two):
        if locate:
            raise ConfigError(missing)
        return Difference(False, **known, notes=(missing,))
    return Difference(False, **known, **_find_step(one, two, max(epoch, 1), locate))


def _diff_loops(one: Side, two: Side, begun: Mapping[str, Any], *, explain: bool) -> Difference:
    """Compare two recorded loops, or one with a run, by step."""
    found, notes = compare_loops(one.ranks, two.ranks)
    if found is None:
        return Difference(True, **begun, notes=tuple(notes), recorded_loop=True)
    return Difference(
        False,
        **begun,
        epoch=found.epoch,
        step=found.step,
        names=found.names,
        notes=(*notes, *[LOOP_HELP] * explain),
        recorded_loop=True,
        ranks=found.ranks,
    )


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


def _compare_beginnings(one: Side, two: Side) -> dict[str, Any]:
    """Return the fields that differ in what the two runs began with."""
    begun = (one.trail[0], two.trail[0])
    if one.config is not None and two.config is not None:
        settings = [one.config.identity(), two.config.identity()]
    else:  # a recorded loop has its settings in line 0, a run only their digest
        recorded = [entry.get("settings") for entry in begun]
        settings = [values if isinstance(values, dict) else {} for values in recorded]
    keys = ("source", "data", "initialization", "model", "world_size")
    facts = [{key: entry.get(key) for key in keys} for entry in begun]
    environments = [entry.get("environment") for entry in begun]
    return {
        "settings": tuple(compare_values(settings[0], settings[1])),
        "environment": tuple(compare_values(environments[0], environments[1])),
        "facts": tuple(compare_values(facts[0], facts[1])),
    }


def _find_obstacle(one: Side, two: Side, epoch: int, names: Sequence[str]) -> str | None:
    """Return why executing the runs again cannot say more than their trails, or None."""
    if names == ["length"]:
        return "one run ends before the other; until then they are equal"
    if epoch == 0 and {*one.trail[0]["state"]} != {*two.trail[0]["state"]}:
        return "the two runs do not have the same tensors: another model, or another optimizer"
    return None


def _explain_missing_entry(one: Side, two: Side) -> str | None:
    """Return which run of `fit` cannot be executed again without its model, or None."""
    for side in (one, two):
        if side.config is not None and side.config.model.name == USER_MODEL and side.entry is None:
            return (
                f"{side.path} is a run of fit(), which must be executed again to find the step: "
                f"use {ENTRY_HELP.partition(', or ')[2]}"
            )
    return None


def _find_step(one: Side, two: Side, epoch: int, locate: bool) -> dict[str, Any]:
    """Find the step within an epoch, and with ``locate`` the op within the step."""
    # [Step 1] Execute the epoch again in both runs, from their last common checkpoint before it.
    common = {0} | {e for e in one.checkpoints & two.checkpoints if e < epoch}
    where = {"start": max(common), "epoch": epoch, "step": None, "out": ""}
    traces = [_execute(side, where) for side in (one, two)]
    # [Step 2] A run that does not give its own trail again was changed from outside.
    reproduced = tuple(trace["reproduced"] for trace in traces)
    notes = [
        f"{side.path} does not repeat: executed again, epoch {epoch} differs from its own trail, "
        "so something outside its configuration changed it (another machine, a fault, a generator)"
        for side, repeats in zip((one, two), reproduced, strict=True)
        if not repeats
    ]
    # [Step 3] Compare the states after each step.
    difference = compare_trails(traces[0]["steps"], traces[1]["steps"])
    if difference is None:
        notes.append(f"executed again, the two runs agree through epoch {epoch}")
        return {"reproduced": reproduced, "notes": tuple(notes)}
    place, names = difference
    steps = next(trace["steps"] for trace in traces if place < len(trace["steps"]))
    step = int(steps[place]["step"])
    result = {
        "step": step,
        "step_names": tuple(name for name in names if "/" in name),
        "reproduced": reproduced,
        "notes": tuple(notes),
    }
    if not locate:
        return result
    # [Step 4] Execute both once more, and record the ops of that step.
    located = _find_op(one, two, {**where, "step": step})
    return {**result, **located, "notes": (*notes, *located["notes"])}


def _find_op(one: Side, two: Side, where: Mapping[str, Any]) -> dict[str, Any]:
    """Execute both runs up to a step, record its ops, and find the first that differs."""
    records, states = [], []
    with TemporaryDirectory() as folder:
        for name, side in (("a", one), ("b", two)):
            out = Path(folder) / name
            out.mkdir()
            answer = _execute(side, {**where, "out": str(out)})
            records.append([OpRecord.from_dict(record) for record in answer["records"]])
            states.append(load_file(out / STATE))
    tensors: tuple[TensorDifference, ...] = ()
    if states[0].keys() == states[1].keys():
        tensors = tuple(compare_tensors(states[0], states[1]))
    finding = find_first_difference(records[0], records[1])
    notes: tuple[str, ...] = ()
    modes = [side.config.execution.mode for side in (one, two) if side.config is not None]
    if "compiled" in modes:
        notes = (
            "operations were recorded in eager mode: those of a compiled step cannot be recorded",
        )
        if finding is None:
            notes += ("in eager mode the step agrees, so the difference is in compiled kernels",)
    return {"finding": finding, "tensors": tensors, "notes": notes}


def _execute(side: Side, where: Mapping[str, Any]) -> dict[str, Any]:
    """Execute part of one run again in a process of its own, with the variables it had."""
    assert side.config is not None  # a recorded loop was compared before
    request = {
        "run": str(side.path.absolute()),
        "config": side.config.model_dump(exclude_unset=True),
        "recorded": [side.trail[where["start"]], side.trail[where["epoch"]]],
        "entry": side.entry,
        "data": side.data,
        **where,
    }
    return run_worker("trace", request, side.trail[0]["environment"]["variables"])
