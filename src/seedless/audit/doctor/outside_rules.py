"""Causes that no seed fixes: a clock, the system's entropy, the order in which work ends.

That a script reads them says little: many only print a time. So these causes are no more than
possible, unless the source code shows that the value which differs comes from there, until the
experiment that fixes the source takes the difference away.
"""

import ast
from collections.abc import Collection, Iterator

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.record_lines import Outside
from seedless.audit.doctor.script_sources import list_source_paths, read_source
from seedless.script_recorder.outside_values import CLOCK, COMPLETION, ENTROPY

CAUSES_BY_SOURCE = {CLOCK: "clock", ENTROPY: "entropy", COMPLETION: "completion-order"}
MAX_PLACES = 4  # named in the evidence
PRINTING = ("print", "debug", "info", "warning", "error", "log", "write", "set_postfix", "update")


def judge_outside_values(case: Case, origins: Collection[str] = ()) -> Iterator[Candidate]:
    """Yield a cause for each source that the script read before the runs differed.

    Args:
        case: two runs that differ.
        origins: lines that the first value that differs is known to come from.
    """
    for source, cause in CAUSES_BY_SOURCE.items():
        reads = _list_reads(case, source)
        if not reads:
            continue
        known = [read for read in reads if read.line in origins]
        chosen = max(known or reads, key=lambda read: (_rate_use(case, read.line), read.count))
        places = list(dict.fromkeys(f"{read.call} at {read.line}" for read in reads))
        sentence = f"the script calls {', '.join(places[:MAX_PLACES])}"
        words = {"call": chosen.call}
        confidence = LIKELY if known else POSSIBLE
        yield Candidate(cause, chosen.line, confidence, (sentence,), words, f"fixed-{source}")


def _list_reads(case: Case, source: str) -> list[Outside]:
    """Return the reads of a source up to the step that differs, in all processes of one run."""
    run = case.runs[0]
    return [
        read
        for process in (*run.processes, *run.workers)
        for read in process.outside
        if read.source == source and read.after < case.first.step
    ]


def _rate_use(case: Case, place: str) -> int:
    """Return how likely the value that a line reads decides something, from 0 to 3."""
    path, _, number = place.rpartition(":")
    _, folder = list_source_paths(case)
    source = read_source(folder, path) if path and number.isdecimal() else None
    try:
        tree = ast.parse(source or "")
    except (SyntaxError, ValueError, RecursionError):
        return 1
    line = int(number) if number.isdecimal() else 0
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.stmt)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if any(isinstance(node, ast.Compare) for node in around):
        return 3
    if any(isinstance(node, ast.Call) and _is_printing(node) for node in around):
        return 0
    return 2 if any(isinstance(node, ast.BinOp) for node in around) else 1


def _is_printing(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    return name in PRINTING
