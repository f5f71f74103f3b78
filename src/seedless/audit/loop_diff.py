"""Where two recorded loops begin to differ: the step, and, executed again, the operation."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from seedless.audit.difference import Difference, Side
from seedless.audit.loop_comparison import compare_loops

LOOP_HELP = (
    "record every step to find the step; --locate --execute runs the two recorded commands again, "
    "with your rights, to find the operation"
)


def diff_loops(one: Side, two: Side, begun: Mapping[str, Any]) -> Difference:
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
        notes=tuple(notes),
        recorded_loop=True,
        ranks=found.ranks,
    )


def locate_in_loops(
    one: Side, two: Side, found: Difference, report: Callable[[str], None]
) -> Difference:
    """Execute the commands of two recorded loops again to find the operation that differs."""
    from seedless.audit.loop_execution import execute_loops, read_command

    if found.names in (("length",), ("ranks",)):
        note = "where both have steps they agree, so there is no operation to find"
        return replace(found, notes=(*found.notes, note))
    commands = [read_command(side.path, side.trail) for side in (one, two)]
    first = max(int(side.trail[1]["step"]) for side in (one, two))
    step = first if found.step is None else found.step
    located = execute_loops(commands[0], commands[1], step, report)
    return replace(
        found,
        diagnosis=located.diagnosis,
        reproduced=located.reproduced,
        notes=(*found.notes, *located.notes),
    )
