"""Pair the operations of two runs of one program, where one has operations that do not matter.

A progress bar or a printed value reads the loss in one run and not in the other. Such operations
are left out if nothing after them depends on them; all others stay, without a partner.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seedless.script_recorder.op_record import OpRecord

MAX_SKIPPED = 5_000
MAX_SKIPS = 200
# So many operations in a row must agree before the runs count as in step again.
AGREEING_AFTERWARDS = 16

DRAW_PHASE = "draw"  # of a draw of Python's or numpy's generators
_TRAINING_PHASES = ("backward", "optimizer")

Pair = tuple[OpRecord | None, OpRecord | None]
Place = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class _Skip:
    """Operations that only one of the runs performs: positions [start, end) of that run."""

    side: int
    start: int
    end: int


def align_operations(a: Sequence[OpRecord], b: Sequence[OpRecord]) -> list[Pair]:
    """Return the operations of two runs in pairs; None stands for one that a run does not perform.

    Example:
        >>> one, two = OpRecord("", "", "aten.exp.default"), OpRecord("", "", "aten.item.default")
        >>> len(align_operations([one, two, one], [one, one]))
        2
    """
    runs = (a, b)
    places = tuple([find_place(record) for record in run] for run in runs)
    pairs: list[Pair] = []
    at = [0, 0]
    # [Step 1] Walk through both runs; where they part, skip as few operations of one as possible.
    for skip in _find_skips(places):
        start = skip.start - at[skip.side]
        pairs += zip(a[at[0] : at[0] + start], b[at[1] : at[1] + start], strict=True)
        at = [position + start for position in at]
        # [Step 2] Keep what was skipped, unless nothing depends on it.
        block = runs[skip.side][skip.start : skip.end]
        if not _is_without_effect(block, runs[skip.side], skip):
            pairs += [(one, None) if skip.side == 0 else (None, one) for one in block]
        at[skip.side] = skip.end
    # [Step 3] From where they never meet again, pair them as they come.
    rest = [run[position:] for run, position in zip(runs, at, strict=True)]
    shared = min(map(len, rest))
    pairs += zip(rest[0][:shared], rest[1][:shared], strict=True)
    pairs += [(one, None) for one in rest[0][shared:]]
    pairs += [(None, two) for two in rest[1][shared:]]
    return pairs


def find_place(record: OpRecord) -> Place:
    """Return which operation a record is of, without any value."""
    line = record.line if record.phase == DRAW_PHASE else ""
    return (record.phase, record.module, record.op, line, len(record.inputs))


def _find_skips(places: tuple[list[Place], ...]) -> Iterator[_Skip]:
    """Yield what to skip so that the two runs stay in step; end where that cannot be done."""
    at = [0, 0]
    for _ in range(MAX_SKIPS):
        # [Step 1] As long as they agree, go on.
        while all(position < len(run) for position, run in zip(at, places, strict=True)):
            if places[0][at[0]] != places[1][at[1]]:
                break
            at = [position + 1 for position in at]
        left = [len(run) - position for run, position in zip(places, at, strict=True)]
        if left == [0, 0]:
            return
        # [Step 2] One run has ended: the rest of the other has no partner.
        if 0 in left:
            side = left.index(max(left))
            yield _Skip(side, at[side], len(places[side]))
            return
        # [Step 3] Find the shortest stretch of one run after which they agree again.
        found = _find_shortest_skip(places, at)
        if found is None:
            return
        yield found
        at[found.side] = found.end


def _find_shortest_skip(places: tuple[list[Place], ...], at: list[int]) -> _Skip | None:
    for length in range(1, MAX_SKIPPED + 1):
        for side in (0, 1):
            moved = list(at)
            moved[side] += length
            if moved[side] >= len(places[side]):
                continue
            one, two = (
                run[position : position + AGREEING_AFTERWARDS]
                for run, position in zip(places, moved, strict=True)
            )
            if one == two:
                return _Skip(side, at[side], moved[side])
    return None


def _is_without_effect(block: Sequence[OpRecord], run: Sequence[OpRecord], skip: _Skip) -> bool:
    """Whether nothing that a run does afterwards depends on some of its operations."""
    if any(record.draws or record.phase in _TRAINING_PHASES for record in block):
        return False
    made = {digest for record in block for digest in record.outputs}
    made -= {digest for record in run[: skip.start] for digest in record.outputs}
    for record in run[skip.end :]:
        if any(digest in made for digest in record.inputs):
            return False
        made.difference_update(record.outputs)  # from here on it is this one's, too
    return True
