"""Every draw of a step whose values differ between two runs, not only the first.

A script that seeds nothing draws its split with numpy before it draws its weights with torch. The
first draw that differs is then not the one that explains the weights.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from seedless.audit.doctor.recorded_run import Process
from seedless.audit.doctor.step_ops import OWN_GENERATOR, StepOp, read_ops

if TYPE_CHECKING:  # it needs torch
    from seedless.script_recorder.op_record import OpRecord

MAX_ROOTS = 1000


def find_draw_roots(
    folders: tuple[Path, Path], processes: tuple[Process, Process], step: int
) -> tuple[StepOp, ...]:
    """Return the draws whose inputs and settings agree and whose values differ, in order.

    The search ends where the two runs cease to perform the same operations.
    """
    left, right = (
        read_ops(folder, process, step) for folder, process in zip(folders, processes, strict=True)
    )
    found: list[StepOp] = []
    for index, (one, two) in enumerate(zip(left, right, strict=False)):
        if (one.op, one.line) != (two.op, two.line) or len(found) >= MAX_ROOTS:
            break
        is_equal = (one.inputs, one.settings) == (two.inputs, two.settings)
        if one.draws and is_equal and one.outputs != two.outputs:
            found.append(_make_root(one, index))
    return tuple(found)


def _make_root(record: "OpRecord", index: int) -> StepOp:
    place = record.line or "an unknown line"
    return StepOp(
        kind="draw",
        op=record.op,
        line=record.line,
        module=record.module,
        phase=record.phase,
        note=record.note,
        device=record.device or "cpu",
        draws=record.draws,
        generator_given=record.draws == OWN_GENERATOR,
        names=(),
        left=(),
        right=(),
        unwritten=False,
        description=f"{record.op} at {place} drew other values in each run.",
        agreed=index,
        maker=record.maker,
    )
