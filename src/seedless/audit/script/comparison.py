"""Compare what executing a script again gave with its run: the steps, the outputs, the machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedless.audit.doctor.command import Execution
from seedless.audit.doctor.recorded_run import RecordedRun, read_run
from seedless.audit.loop_comparison import LoopDifference, compare_loops
from seedless.audit.script.command_line import show_command
from seedless.audit.script.observation import describe_environment, describe_outputs, list_steps
from seedless.audit.script.recording import check_success
from seedless.audit.verdict import Verdict
from seedless.core.display import count_things
from seedless.core.errors import RunError
from seedless.core.mismatch import Mismatch, compare_values
from seedless.proof.source_digest import describe_source
from seedless.runs.script_run import ScriptRun
from seedless.runs.script_seal import make_trail
from seedless.script_recorder.causal_order import CAUSAL_ORDER

# The parts of an environment that can change the bits of a script. Flags are set by the script.
DECISIVE = ("python", "machine", "packages", "cpu", "devices", "cuda", "threads")
OTHER_VERSION = (
    "it was recorded by another version of seedless: of each step the values that both versions "
    "record were compared, the weights among them"
)


def compare(run: ScriptRun, command: Sequence[str], executed: Execution, scratch: Path) -> Verdict:
    """Return the verdict on what executing a script again gave."""
    # [Step 1] It must have trained to its end here, too.
    recorded = read_run(executed.records)
    try:
        check_success(command, executed, recorded)
    except RunError as error:
        reason = str(error).removeprefix("no receipt was written: ").splitlines()
        return Verdict("cannot judge", "executed here, the command failed", tuple(reason))
    # [Step 2] The steps, then the outputs.
    notes = [] if is_same_version(run) else [OTHER_VERSION]
    difference = compare_steps(run, recorded)
    if difference is None:
        differing, more = compare_outputs(run, scratch)
        notes += more
        steps = sum(len(trail) - 1 for trail in run.trails)
        if not differing:
            outputs = len(run.script["outputs"])
            compared = f"{count_things(steps, 'step')} and {count_things(outputs, 'output')}"
            sentence = f"executed again, identical: {compared}"
            return Verdict("identical", sentence, tuple(notes))
        sentence = f"executed again, all {steps} steps agree, and outputs differ"
        found: Mapping[str, Any] = {"names": differing}
        notes.insert(0, f"another content: {', '.join(differing)}")
        if not run.script["outputs_named"]:
            notes.append(
                "a file with times or places in it always differs: `seedless run --output FILE` "
                "makes a receipt about the files that matter"
            )
    else:
        where = "before the first step" if difference.step is None else f"at step {difference.step}"
        ranks = (
            f" of process {', '.join(map(str, difference.ranks))}" if any(run.trails[1:]) else ""
        )
        names = sorted(difference.names, key=_find_place)
        then = f", then in {', '.join(names[1:])}" if names[1:] else ""
        sentence = f"executed again, it differs {where}{ranks} in {names[0]}{then}"
        found = {"step": difference.step, "ranks": list(difference.ranks), "names": names}
        notes.append(f"to find out why: seedless doctor -- {show_command(run.script['command'])}")
    # [Step 3] Whether this machine can explain the difference.
    mismatches = compare_machines(run, recorded)
    outcome = "cannot judge" if mismatches else "differs"
    explained = [f"this machine differs: {mismatch}" for mismatch in mismatches]
    return Verdict(outcome, sentence, (*notes, *explained), difference=found)


def compare_steps(run: ScriptRun, recorded: RecordedRun) -> LoopDifference | None:
    """Return the first step that differs from the trails of a run, or None."""
    every = int(run.trails[0][1]["step"])  # 1, unless the run was so long that steps were left out
    here = [
        list(make_trail(run.claims, n, steps, every))
        for n, steps in enumerate(list_steps(recorded))
    ]
    there: Sequence[Sequence[dict[str, Any]]] = run.trails
    if not is_same_version(run):
        names = _list_names(there) & _list_names(here) | {"weights"}
        there, here = _keep_names(there, names), _keep_names(here, names)
    difference, _ = compare_loops(dict(enumerate(there)), dict(enumerate(here)))
    return difference


def _find_place(name: str) -> tuple[int, str]:
    """Return where a value stands in the order in which a step computes its values."""
    value = name.partition("/")[0]
    known = value in CAUSAL_ORDER
    return CAUSAL_ORDER.index(value) if known else len(CAUSAL_ORDER), name


def is_same_version(run: ScriptRun) -> bool:
    """Whether a run was recorded by this version, which records the same values of each step."""
    return bool(run.claims["source"]["digest"] == describe_source()["digest"])


def _list_names(trails: Sequence[Sequence[dict[str, Any]]]) -> set[str]:
    """Return the names of the values that the steps have, without their numbers."""
    lines = [line for trail in trails for line in trail[1:]]
    return {name.partition("/")[0] for line in lines for name in line["state"]}


def _keep_names(
    trails: Sequence[Sequence[dict[str, Any]]], names: Collection[str]
) -> list[list[dict[str, Any]]]:
    """Return trails whose states have the values of these names alone."""
    return [[{**line, "state": _keep(line["state"], names)} for line in trail] for trail in trails]


def _keep(state: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: state[name] for name in state if name.partition("/")[0] in names}


def compare_outputs(run: ScriptRun, scratch: Path) -> tuple[list[str], list[str]]:
    """Return the outputs that differ, and notes on those that agree in what they hold alone."""
    differing, notes = [], []
    for name, expected in run.script["outputs"].items():
        path = scratch / name
        if path.is_symlink() or not path.is_file():
            differing.append(name)
            notes.append(f"{name} was not written")
            continue
        found = describe_outputs([name], scratch)[name]
        if found["digest"] == expected["digest"]:
            continue
        if expected["content"] is not None and found["content"] == expected["content"]:
            notes.append(f"{name} has other bytes and the same content: its times, or their order")
        else:
            differing.append(name)
    return differing, notes


def compare_machines(run: ScriptRun, recorded: RecordedRun) -> list[Mismatch]:
    """Return in what this machine differs from the recorded one that can change bits."""
    here = describe_environment(recorded.training[0])
    there = run.claims["environment"]
    versions = (run.claims["source"]["digest"], describe_source()["digest"])
    return [
        *(found for name in DECISIVE for found in compare_values(there[name], here[name], name)),
        *compare_values(*versions, "source"),
    ]
