"""What a comparison of two runs found, line by line: as `seedless diff` and Python print it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seedless.audit.difference import Difference
    from seedless.audit.doctor.diagnosis import Diagnosis
    from seedless.core.mismatch import Mismatch

MAX_TENSORS, MAX_NAMES = 5, 4


def describe_difference(result: Difference, a: str = "A", b: str = "B") -> Iterator[str]:
    """Yield the lines; ``a`` and ``b`` are the names of the runs."""
    yield from _describe_fields("configuration", result.settings, a, b)
    yield from _describe_fields("environment", result.environment, a, b)
    yield from _describe_fields("data, source, start", result.facts, a, b)
    if result.identical:
        what = "step of both" if result.recorded_loop else "entry of the two"
        yield f"IDENTICAL: every {what} trails agrees"
    else:
        yield from _describe_first(result)
    yield from (f"  {note}" for note in result.notes)


def _describe_first(result: Difference) -> Iterator[str]:
    """Yield where two runs begin to differ, and in what."""
    yield f"THEY DIFFER {_describe_place(result)}: {_list(result.names)}"
    if result.step is not None and not result.recorded_loop:
        yield f"  first at step {result.step}: {_list(result.step_names)}"
    if result.diagnosis is not None:
        yield from _describe_diagnosis(result.diagnosis)
    if result.finding is not None:
        yield f"  {result.finding.describe()}"
    for row in result.tensors[:MAX_TENSORS]:
        bits = f", {row.bits} bit{'s' * (row.bits != 1)}" if row.bits is not None else ""
        yield (
            f"  before that step {row.name} differs in {row.differing} of {row.elements} elements"
            f"{bits}: at {list(row.first)} {row.left!r} against {row.right!r}"
        )
    if len(result.tensors) > MAX_TENSORS:
        yield f"  and {len(result.tensors) - MAX_TENSORS} more tensors"


def _describe_diagnosis(found: Diagnosis) -> Iterator[str]:
    """Yield what executing two recorded loops again showed."""
    yield f"  executed again, {found.what} differs first, at optimizer step {found.step}"
    if found.op:
        place = f" in {found.module}" if found.module else ""
        yield f"  first operation that differs: {found.op}{place}"
    if found.line:
        yield f"  line: {found.line}"
    yield f"  {found.confidence} cause ({found.cause}): {found.title}"
    yield f"  to do: {found.remedy}"
    yield from (f"  {sentence}" for sentence in found.evidence)


def _describe_place(result: Difference) -> str:
    """Return where two runs differ: an epoch, or the step, epoch and processes of a loop."""
    if not result.recorded_loop:
        return "before the first step" if result.epoch == 0 else f"in epoch {result.epoch}"
    place = "before the first step" if result.step is None else f"at step {result.step}"
    epoch = "" if result.epoch is None else f" of epoch {result.epoch}"
    ranks = ", ".join(map(str, result.ranks))
    return place + epoch + (f" in process {ranks}" if result.ranks not in ((), (0,)) else "")


def _describe_fields(title: str, fields: Sequence[Mismatch], a: str, b: str) -> Iterator[str]:
    for field in fields:
        yield f"{title}: {field.field} is {field.recorded!r} in {a}, {field.here!r} in {b}"


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
