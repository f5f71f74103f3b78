"""Pass 2: a fresh pair of runs, in which the operations of the step that differs are recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from seedless.audit.doctor.case import Case
from seedless.audit.doctor.draw_roots import find_draw_roots
from seedless.audit.doctor.first_step import INITIAL_WEIGHTS, PROCESS_COUNT, STEP_COUNT
from seedless.audit.doctor.pair import Pair, Runner
from seedless.audit.doctor.step_ops import (
    compare_step_ops,
    compare_step_tensors,
    find_compiled_line,
    find_thread_lines,
    has_other_order,
)
from seedless.core.bounded_reading import shorten
from seedless.script_recorder.settings import Settings

MAX_PAIRS = 4  # of which the last ones are needed only where the difference is intermittent


@dataclass(frozen=True)
class OpPass:
    """What pass 2 found.

    Attributes:
        case: the case of the fresh pair; that of the first pair where it could not be recorded.
        pair: the fresh pair, if it differs.
        intermittent: fresh pairs were recorded, and did not differ.
        note: what went otherwise than expected, or "".
    """

    case: Case
    pair: Pair | None = None
    intermittent: bool = False
    note: str = ""


def record_step(runner: Runner, case: Case, seeds: Mapping[str, Any] | None = None) -> OpPass:
    """Run a fresh pair with the operations of the first differing step recorded.

    The fresh pair is judged on its own: where it differs at another step, that step is recorded in
    one more pair. ``seeds``: generators that are seeded in both runs, as in an experiment.
    """
    if case.first.what in (STEP_COUNT, PROCESS_COUNT):
        return OpPass(case)
    step = case.first.step
    for _ in range(MAX_PAIRS):
        settings = Settings("", ops_at=step, end_after=step, seeds=seeds or {})
        pair = runner.run_pair(f"operations of step {step}", settings)
        if failure := _find_failure(pair):
            return OpPass(case, note=f"the operations of step {step} were not recorded: {failure}")
        first = pair.first
        if first is None or first.what in (STEP_COUNT, PROCESS_COUNT):
            continue
        if first.step != step:
            step = first.step
            continue
        fresh = replace(case, runs=(pair.a.recorded, pair.b.recorded), first=first)
        assert fresh.pair is not None  # both have the step, so both have the process
        op = compare_step_ops(pair.folders, fresh.pair, step)
        known = replace(
            fresh,
            op=op,
            draws=find_draw_roots(pair.folders, fresh.pair, step),
            tensors=compare_step_tensors(pair.folders, fresh.pair, step),
            reordered=first.what == INITIAL_WEIGHTS
            and has_other_order(pair.folders, fresh.pair, step, "weights_before"),
            thread_lines=find_thread_lines(pair.folders, fresh.pair, step),
            compiled_line=find_compiled_line(pair.folders, fresh.pair, step),
        )
        return OpPass(known, pair)
    note = f"{MAX_PAIRS} further pairs of runs did not differ at step {step}"
    return OpPass(case, intermittent=True, note=note)


def _find_failure(pair: Pair) -> str:
    """Return why the recorder failed in one of two runs, or ""."""
    for run in (pair.a, pair.b):
        for process in run.recorded.processes:
            if process.errors:
                return shorten(process.errors[0])
        if not run.recorded.training:
            return "no step was made"
    return ""
