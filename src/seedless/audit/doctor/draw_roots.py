"""Every draw of a step whose values differ between two runs, not only the first.

A script that seeds nothing draws its split with numpy before it draws its weights with torch. The
first draw that differs is then not the one that explains the weights.
"""

from pathlib import Path
from typing import Any

from seedless.audit.doctor.recorded_run import Process
from seedless.audit.doctor.step_ops import StepOp, read_ops

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
        if _name(one) != _name(two) or len(found) >= MAX_ROOTS:
            break
        is_equal = all(one.get(key) == two.get(key) for key in ("inputs", "settings"))
        values = [(values.get("outputs"), values.get("value")) for values in (one, two)]
        if _find_generator(one) and is_equal and values[0] != values[1]:
            found.append(_make_root(one, index))
    return tuple(found)


def _name(values: dict[str, Any]) -> tuple[Any, ...]:
    return values.get("op") or values.get("call"), values.get("line")


def _find_generator(values: dict[str, Any]) -> str:
    return str(values.get("draws") or values.get("generator") or "")


def _make_root(values: dict[str, Any], index: int) -> StepOp:
    generator = _find_generator(values)
    call, line = str(values.get("op") or values.get("call") or ""), str(values.get("line") or "")
    return StepOp(
        kind="draw",
        op=call,
        line=line,
        module=str(values.get("module") or ""),
        phase=str(values.get("phase") or ""),
        note=str(values.get("note") or ""),
        device=str(values.get("device") or "cpu"),
        draws=generator,
        generator_given=generator == "torch-generator",
        names=(),
        left=(),
        right=(),
        unwritten=False,
        description=f"{call} at {line or 'an unknown line'} drew other values in each run.",
        agreed=index,
    )
