"""Runs that say too little: no step recorded, or cut off before the other."""

import os
from collections.abc import Sequence

from seedless.audit.doctor.first_step import STEP_COUNT
from seedless.audit.doctor.pair import Pair, Run
from seedless.core.bounded_reading import shorten
from seedless.core.display import escape_text
from seedless.core.processes import describe_exit

RECORDER_MARK = "seedless: "  # begins what our sitecustomize prints when it fails
_REASONS_WITHOUT_FAILURE = ("exit", "end_after")


def explain_missing_steps(run: Run, command: Sequence[str]) -> str:
    """Return why a run recorded no step, as far as that can be told, and what to do."""
    execution, recorded = run.execution, run.recorded
    text = f"no training step was recorded in {' '.join(command)!r}: "
    if errors := [error for process in recorded.processes for error in process.errors]:
        return f"{text}the recorder failed ({shorten(errors[0])})"
    for line in execution.read_last_lines(1000):
        if line.startswith(RECORDER_MARK):
            return f"{text}{shorten(line.removeprefix(RECORDER_MARK))}"
    if execution.timed_out:
        return f"{text}it was ended after {execution.seconds:.0f} s; allow more with --timeout"
    if execution.exit_code != 0:
        return f"{text}{describe_exit(execution.exit_code)}. {_quote(run)}"
    if blocked := _find_blocking_flag(command):
        return f"{text}Python's option {blocked} keeps the recorder out; leave it out"
    if not recorded.processes:
        return (
            f"{text}no process imported torch. The recorder enters processes of Python through "
            "PYTHONPATH: is this another program, or does it remove that variable?"
        )
    return (
        f"{text}torch was imported, and no optimizer made a step and no backward pass ran. "
        "Does the command train? Steps are seen in torch.optim optimizers and in backward()"
    )


def find_cut_off(pair: Pair) -> str:
    """Return why two runs whose common steps agree cannot be compared to their end, or ""."""
    if pair.first is None or pair.first.what != STEP_COUNT:
        return ""
    shorter = min(
        (process for process in pair.first.processes if process is not None),
        key=lambda process: len(process.steps),
    )
    run = pair.a if shorter in pair.a.recorded.processes else pair.b
    made, end = len(shorter.steps), shorter.end
    if shorter.errors:
        return f"the recorder failed after step {made} of one run: {shorten(shorter.errors[0])}"
    if run.execution.timed_out:
        return f"one run was ended by the timeout after step {made}; until then the runs agree"
    if end is None or end.reason not in _REASONS_WITHOUT_FAILURE or run.execution.exit_code != 0:
        error = f" ({shorten(end.error)})" if end is not None and end.error else ""
        return f"one run failed after step {made}{error}; until then the runs agree. {_quote(run)}"
    return ""


def _quote(run: Run) -> str:
    """Return the last lines of what the command printed on standard error."""
    lines = [shorten(escape_text(line)) for line in run.execution.read_last_lines()]
    if not lines:
        return "It printed nothing on standard error"
    return "The last lines of its standard error:\n" + "\n".join(lines)


def _find_blocking_flag(command: Sequence[str]) -> str:
    """Return the option of Python in a command that keeps sitecustomize or PYTHONPATH out."""
    for place, word in enumerate(command):
        if not os.path.basename(word).startswith("python"):
            continue
        for option in command[place + 1 :]:
            if not option.startswith("-") or option.startswith("--") or option in ("-m", "-c"):
                break
            for letter in "IES":
                if letter in option[1:]:
                    return f"-{letter}"
    return ""
