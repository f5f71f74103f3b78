"""Where two runs begin to differ: the first epoch and tensors by their trails, then step and op.

    diff: compare settings -> compare trails -> execute the epoch again -> record the step's ops

Each stage narrows the place down: the trails name the epoch, both runs executed again from their
last common checkpoint name the step, and that step recorded op by op names the first op.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import load_file

from seedless.audit.difference import Difference, Side, open_side
from seedless.audit.first_difference import (
    TensorDifference,
    compare_tensors,
    find_first_difference,
)
from seedless.audit.loop_diff import LOOP_HELP, diff_loops, locate_in_loops
from seedless.audit.step_trace import STATE
from seedless.audit.worker import run_worker
from seedless.core.errors import ConfigError
from seedless.core.files import AnyPath
from seedless.core.mismatch import compare_values
from seedless.proof.trail import compare_trails
from seedless.runs.prepare import USER_MODEL
from seedless.runs.user_model import ENTRY_OPTION_HELP
from seedless.script_recorder.op_record import OpRecord


def diff(
    a: AnyPath,
    b: AnyPath,
    *,
    replay: bool = True,
    locate: bool = False,
    execute: bool = False,
    report: Callable[[str], None] = lambda line: None,
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
            Recorded loops need ``execute``.
        execute: with ``locate``, run the commands of two recorded loops again, each in a copy of
            its folder. They run with your rights: do this only for scripts that you trust.
        report: is called with each command before it is executed.
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
        found = diff_loops(one, two, begun)
        if found.identical or not (replay or locate):
            return found
        if not (locate and execute):
            return replace(found, notes=(*found.notes, LOOP_HELP))
        return locate_in_loops(one, two, found, report)
    if execute:
        raise ConfigError("--execute is for recorded loops: a run is executed again without it")
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
                f"use {ENTRY_OPTION_HELP}"
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
