"""Where two runs part: the first epoch and tensors from their trails, the step and op by replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import load_file

from seedless.audit.locate import Finding, TensorDifference, compare_tensors, find_first
from seedless.audit.op_record import OpRecord
from seedless.audit.step_trace import STATE
from seedless.audit.worker import run_worker
from seedless.core.config import Config
from seedless.core.config_files import load_config
from seedless.core.errors import ConfigError, RunError
from seedless.core.mismatch import Mismatch, compare_values
from seedless.proof.trail import Entry, first_difference, read_trail
from seedless.runs.prepare import USER_MODEL
from seedless.runs.user_model import ENTRY_HELP
from seedless.train.checkpoint import list_checkpoints


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two runs: a folder with a trail, and a configuration where it can be replayed."""

    path: Path
    trail: Sequence[Entry]
    config: Config | None
    entry: str | None = None
    data: str | None = None

    @property
    def checkpoints(self) -> set[int]:
        """The epochs it can be replayed from."""
        return {position.epoch for position, _ in list_checkpoints(self.path) if not position.batch}


@dataclass(frozen=True)
class Difference:
    """What two runs have in common and where they part.

    Attributes:
        identical: whether no entry of the trails differs.
        settings, environment, facts: fields that differ: of the configurations, of the machines,
            and of data, source, initialization and model.
        epoch: the first epoch whose entry differs, 0 for the state before the first step. For a
            trail of your own, the number of the call.
        names: what differs there: tensors, and "schedule", "loss", "score", "step", "length".
        step: the first step of that epoch after which the states differ, if it was replayed.
        step_names: the tensors that differ after that step.
        reproduced: for each side, whether the replay gave what its trail recorded.
        finding: the first op that differs, if it was located.
        tensors: what differs before that step already, element by element.
        notes: what could not be done, and why.
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
    notes: tuple[str, ...] = field(default=())


def diff(
    a: str | Path,
    b: str | Path,
    *,
    replay: bool = True,
    locate: bool = False,
    entry: str | None = None,
    entry_b: str | None = None,
    data: str | None = None,
) -> Difference:
    """Compare two runs and find where they part.

    Args:
        a: a run folder, finished or not, or the folder of a `Trail`.
        b: the other.
        replay: find the step within the first epoch that differs, by running that epoch again.
        locate: find the op within that step; both sides are run again up to it.
            For runs of `fit` both need ``entry``; without it the trails alone are compared.
        entry: for runs of `fit`, "package.module:function" that gives their model and arrays.
        entry_b: the same for the second run, if it is another.
        data: where the data lie, if not where they lay.
    """
    one = open_side(Path(a), entry, data)
    two = open_side(Path(b), entry_b or entry, data)
    changed = _compare_beginnings(one, two)
    found = first_difference(one.trail, two.trail)
    if found is None:
        return Difference(True, **changed)
    place, names = found
    parts: dict[str, Any] = {**changed, "epoch": place, "names": tuple(names)}
    if not (replay or locate):
        return Difference(False, **parts)
    if one.config is None or two.config is None:
        note = "a trail of your own says no more: record it at every step to find the step"
        return Difference(False, **parts, notes=(note,))
    if names == ["length"]:
        return Difference(
            False, **parts, notes=("one run ends before the other; until then equal",)
        )
    if place == 0 and {*one.trail[0]["state"]} != {*two.trail[0]["state"]}:
        note = "the two runs do not keep the same tensors: another model, or another optimizer"
        return Difference(False, **parts, notes=(note,))
    if missing := _miss_entry(one, two):
        if locate:
            raise ConfigError(missing)
        return Difference(False, **parts, notes=(missing,))
    return Difference(False, **parts, **_replay(one, two, max(place, 1), locate))


def open_side(path: Path, entry: str | None, data: str | None) -> Side:
    """Read a run folder or the folder of a trail."""
    trail = read_trail(path, torn=True)
    if not trail:
        raise RunError(f"{path} has an empty trail: nothing was recorded")
    file = path / "config.toml"
    config = load_config(file) if file.exists() else None
    machine = trail[0].get("environment")
    if not isinstance(machine, dict) or not isinstance(machine.get("variables"), dict):
        raise RunError(f"{path}: line 1 of its trail does not say in what environment it began")
    return Side(path, trail, config, entry, data)


def _compare_beginnings(one: Side, two: Side) -> dict[str, Any]:
    """Return the fields that differ in what the two runs began with."""
    begun = (one.trail[0], two.trail[0])
    if one.config is not None and two.config is not None:
        settings = compare_values(one.config.identity(), two.config.identity())
    else:
        settings = compare_values(_plain(begun[0]), _plain(begun[1]))
    keys = ("source", "data", "initialization", "model")
    facts = [{key: entry.get(key) for key in keys} for entry in begun]
    machines = [entry.get("environment") for entry in begun]
    return {
        "settings": tuple(settings),
        "environment": tuple(compare_values(machines[0], machines[1])),
        "facts": tuple(compare_values(facts[0], facts[1])),
    }


def _plain(entry: Entry) -> Any:
    """Return the settings kept with a trail of one's own; a run's own lie in its folder."""
    settings = entry.get("settings")
    return settings if isinstance(settings, Mapping) else {}


def _miss_entry(one: Side, two: Side) -> str | None:
    """Return what is missing to execute both sides again, or None."""
    for side in (one, two):
        if side.config is not None and side.config.model.name == USER_MODEL and side.entry is None:
            return (
                f"{side.path} is a run of fit(), and its trail alone says no more; to find the "
                f"step, replay it: {ENTRY_HELP.partition(', or ')[2]}"
            )
    return None


def _replay(one: Side, two: Side, epoch: int, locate: bool) -> dict[str, Any]:
    """Find the step within an epoch, and the op within the step."""
    shared = {0} | {e for e in one.checkpoints & two.checkpoints if e < epoch}
    where = {"start": max(shared), "epoch": epoch, "step": None, "out": ""}
    traces = [_ask(side, where) for side in (one, two)]
    reproduced = tuple(trace["reproduced"] for trace in traces)
    notes = [
        f"{side.path} does not repeat: executed again, epoch {epoch} differs from its own trail, "
        "so something outside its configuration changed it (another machine, a fault, a generator)"
        for side, repeats in zip((one, two), reproduced, strict=True)
        if not repeats
    ]
    found = first_difference(traces[0]["steps"], traces[1]["steps"])
    if found is None:
        notes.append(f"executed again, the two runs agree through epoch {epoch}")
        return {"reproduced": reproduced, "notes": tuple(notes)}
    place, names = found
    steps = traces[0]["steps"] if place < len(traces[0]["steps"]) else traces[1]["steps"]
    step = int(steps[place]["step"])
    result = {
        "step": step,
        "step_names": tuple(name for name in names if "/" in name),
        "reproduced": reproduced,
        "notes": tuple(notes),
    }
    if not locate:
        return result
    located = _locate(one, two, {**where, "step": step})
    return {**result, **located, "notes": (*notes, *located["notes"])}


def _locate(one: Side, two: Side, where: Mapping[str, Any]) -> dict[str, Any]:
    """Run both sides up to a step, record its ops, and find the first that differs."""
    records, states = [], []
    with TemporaryDirectory() as folder:
        for name, side in (("a", one), ("b", two)):
            out = Path(folder) / name
            out.mkdir()
            found = _ask(side, {**where, "out": str(out)})["records"]
            records.append([OpRecord.from_dict(record) for record in found])
            states.append(load_file(out / STATE))
    tensors: tuple[TensorDifference, ...] = ()
    if states[0].keys() == states[1].keys():
        tensors = tuple(compare_tensors(states[0], states[1]))
    finding = find_first(records[0], records[1])
    notes: tuple[str, ...] = ()
    if any(
        side.config is not None and side.config.execution.mode == "compiled" for side in (one, two)
    ):
        notes = ("operations were recorded in eager form: a compiled step cannot be looked into",)
        if finding is None:
            notes += ("in eager form the step agrees, so the difference lies in compiled kernels",)
    return {"finding": finding, "tensors": tensors, "notes": notes}


def _ask(side: Side, where: Mapping[str, Any]) -> dict[str, Any]:
    """Run one side again in a process of its own, with the variables it had."""
    request = {"run": str(side.path.absolute()), "entry": side.entry, "data": side.data, **where}
    return run_worker("trace", request, side.trail[0]["environment"]["variables"])
