"""Where two recorded loops begin to differ: their lines are compared by step, in every process.

A loop that was resumed into a folder of its own begins with a later step than one that was never
stopped; the steps that both have are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seedless.core.errors import RunError
from seedless.proof.loop_lines import compare_generators, compare_lines
from seedless.proof.trail import TrailEntry

RankedTrails = Mapping[int, Sequence[TrailEntry]]


@dataclass(frozen=True)
class LoopDifference:
    """The first line in which two loops differ.

    Attributes:
        step: its step; None for the state before the first step, or where the ranks differ.
        epoch: its epoch, as the loop gave it.
        names: what differs there: tensors, other fields, "length" where one loop ends before the
            other, "ranks" where they do not have the same processes.
        ranks: the processes in which that step differs.
    """

    step: int | None
    epoch: int | None
    names: tuple[str, ...]
    ranks: tuple[int, ...]


def compare_loops(a: RankedTrails, b: RankedTrails) -> tuple[LoopDifference | None, list[str]]:
    """Return the first difference of two loops, or None, and notes on what was not compared."""
    if {*a} != {*b}:
        return LoopDifference(None, None, ("ranks",), tuple(sorted({*a} ^ {*b}))), []
    found: dict[int, LoopDifference] = {}
    notes: list[str] = []
    for rank in sorted(a):
        difference, more = _compare_rank(rank, a[rank], b[rank])
        notes += [note for note in more if note not in notes]
        if difference is not None:
            found[rank] = difference
    if not found:
        return None, notes
    first = min(found.values(), key=_get_place)
    ranks = [rank for rank, one in found.items() if _get_place(one) == _get_place(first)]
    names = [name for rank in ranks for name in found[rank].names]
    return LoopDifference(first.step, first.epoch, tuple(dict.fromkeys(names)), tuple(ranks)), notes


def _compare_rank(
    rank: int, a: Sequence[TrailEntry], b: Sequence[TrailEntry]
) -> tuple[LoopDifference | None, list[str]]:
    """Compare the trails of one process."""
    # [Step 1] Pair the lines by step.
    steps = [{int(line["step"]): line for line in trail[1:]} for trail in (a, b)]
    common = sorted({*steps[0]} & {*steps[1]})
    if not common:
        shown = [f"{min(one)} to {max(one)}" for one in steps]
        raise RunError(
            f"the two trails have no step in common: one has steps {shown[0]}, the other "
            f"{shown[1]}; record the same steps in both"
        )
    notes = _describe_unpaired(*steps)
    start = compare_lines(a[0], b[0]) if min(steps[0]) == min(steps[1]) else []
    # [Step 2] The first step whose values differ. What the loops began with counts if that is the
    # first step at all: a script may load its weights after the trail has begun.
    for step in common:
        one, other = steps[0][step], steps[1][step]
        if names := compare_lines(one, other):
            if start and step == common[0]:
                return LoopDifference(None, None, tuple(start), (rank,)), notes
            return LoopDifference(step, _read_epoch(one, other), tuple(names), (rank,)), notes
    if start:
        notes.append(
            f"before the first step {start[0]} differs, and after it nothing does: it was set "
            "after the trail had begun"
        )
    notes += _describe_generators(common, *steps)
    # [Step 3] One loop may have ended before the other.
    ends = [max(one) for one in steps]
    if ends[0] != ends[1]:
        later = steps[ends[1] > ends[0]]
        step = min(number for number in later if number > min(ends))
        return LoopDifference(step, _read_epoch(later[step]), ("length",), (rank,)), notes
    return None, notes


def _describe_unpaired(a: Mapping[int, TrailEntry], b: Mapping[int, TrailEntry]) -> list[str]:
    """Return a sentence on the steps that only one loop has, up to the end of the shorter one."""
    end = min(max(a), max(b))
    unpaired = sorted(step for step in {*a} ^ {*b} if step <= end)
    if not unpaired:
        return []
    return [
        f"{len(unpaired)} steps from {unpaired[0]} to {unpaired[-1]} are in one trail only and "
        "were not compared: a loop was resumed there, or not every step was recorded"
    ]


def _describe_generators(
    common: Sequence[int], a: Mapping[int, TrailEntry], b: Mapping[int, TrailEntry]
) -> list[str]:
    for step in common:
        if names := compare_generators(a[step], b[step]):
            return [
                f"the state of {', '.join(names)} differs from step {step} on, and no value does: "
                "nothing drew from it"
            ]
    return []


def _read_epoch(*lines: TrailEntry) -> int | None:
    """Return the epoch that a line states, if it is a whole number."""
    for line in lines:
        if isinstance(line.get("epoch"), int) and not isinstance(line["epoch"], bool):
            return int(line["epoch"])
    return None


def _get_place(difference: LoopDifference) -> int:
    return -1 if difference.step is None else difference.step
