"""Causes that lie outside torch's operations: a number of Python's, a thread, a foreign kernel."""

from collections.abc import Iterator

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.changing_values import (
    ChangingCall,
    find_changing_origin,
    find_empty_arrays,
    list_changing_calls,
)
from seedless.audit.doctor.script_sources import list_source_paths, read_source
from seedless.audit.doctor.step_ops import StepOp

UNNAMED = "unnamed argument"
ADDRESS = "memory whose address"
CHANGED_OUTSIDE = "a tensor changed outside every recorded operation"


def judge_foreign_writes(case: Case) -> Iterator[Candidate]:
    """Yield causes for a tensor that changed although no recorded operation wrote to it."""
    op = case.op
    if op is None or op.kind != "source":
        return
    if any(ADDRESS in name and "data_ptr" in name for name in op.names) and op.origins:
        line = op.origins[-1]
        sentence = f"the script took the address of that tensor's memory at {', '.join(op.origins)}"
        yield Candidate("atomics", line, LIKELY, (sentence,), {"op": op.op})
    if case.thread_lines and (CHANGED_OUTSIDE in op.names or _has_outside_value(op)):
        places = ", ".join(case.thread_lines[:3])
        sentence = f"the script starts threads at {places}; their operations are not recorded"
        # A value from outside may have come by another way than through a thread.
        confidence = LIKELY if CHANGED_OUTSIDE in op.names else POSSIBLE
        yield Candidate("thread-order", case.thread_lines[0], confidence, (sentence,))


def judge_python_value(case: Case) -> Iterator[Candidate]:
    """Yield the cause where the first thing that differs is a number that Python computed.

    It is likely where the source shows a clock or the like that the number comes from. Otherwise
    draws or the order of a set may lie behind it, which experiments show.
    """
    op = case.op
    if op is None or op.draws or not _has_outside_value(op):
        return
    place = (op.origins[0] if op.origins else "") or op.line
    evidence = [f"the value enters torch at {place}"] if place else []
    if op.kind == "setting":
        values = f"{', '.join(op.left)} in one run and {', '.join(op.right)} in the other"
        evidence = [f"a number that Python computed is {values}", *evidence]
    known = _find_origin(case, place)
    if known is not None:
        line, call = known
        sentence = f"it comes from {call.text} at {line}"
        yield Candidate("python-value", line, LIKELY, (*evidence, sentence))
        return
    others = _list_calls(case)
    if not others:
        yield from _judge_numpy_memory(case, evidence)
    found = [f"{call.text} at {line}" for line, call in others]
    if found:
        evidence.append(f"calls whose results change from run to run: {', '.join(found[:3])}")
    line = others[0][0] if len(others) == 1 else place
    yield Candidate("python-value", line, POSSIBLE, tuple(evidence))


def _judge_numpy_memory(case: Case, evidence: list[str]) -> Iterator[Candidate]:
    """Yield the cause where the script makes arrays of numpy's that have no content."""
    paths, folder = list_source_paths(case)
    for path in paths:
        for number in find_empty_arrays(read_source(folder, path) or ""):
            sentence = f"{path}:{number} makes an array without writing to it"
            yield Candidate(
                "uninitialized-memory",
                f"{path}:{number}",
                POSSIBLE,
                (*evidence, sentence),
                experiment="deterministic",
            )


def _has_outside_value(op: StepOp) -> bool:
    if op.kind == "setting":
        return True
    return op.kind == "source" and any(UNNAMED in name or ADDRESS in name for name in op.names)


def _find_origin(case: Case, place: str) -> tuple[str, ChangingCall] | None:
    """Return the call, with its line, that the values at a place come from; None if unknown."""
    path, _, number = place.rpartition(":")
    _, folder = list_source_paths(case)
    source = read_source(folder, path) if path and number.isdecimal() else None
    call = find_changing_origin(source or "", int(number)) if number.isdecimal() else None
    return (f"{path}:{call.line}", call) if call is not None else None


def _list_calls(case: Case) -> list[tuple[str, ChangingCall]]:
    """Return the calls in the script's sources whose changing results are used, and their lines."""
    paths, folder = list_source_paths(case)
    return [
        (f"{path}:{call.line}", call)
        for path in paths
        for call in list_changing_calls(read_source(folder, path) or "")
    ]
