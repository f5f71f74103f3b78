"""Causes that are operations: their inputs are equal, and their outputs are not."""

from collections.abc import Iterator

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.op_facts import SWITCH, THREADS, explain_op
from seedless.audit.doctor.step_ops import COMPILED_OP, StepOp

UNINITIALIZED_SOURCE = "uninitialized memory"
COMMUNICATION = ("c10d.", "_c10d_functional.")  # their buffers are written, not read
OWN_NAMESPACES = ("aten.", "prims.", "c10d.", "_c10d_functional.", "profiler.")


def judge_op(case: Case) -> Iterator[Candidate]:
    """Yield causes for the first operation that differs, if it is no draw."""
    op = case.op
    if op is None and case.first.what == "gradients":
        sentence = "inputs, weights and loss agree, and the gradients that follow from them do not"
        yield Candidate("nondeterministic-op", "", POSSIBLE, (sentence,), {"advice": SWITCH})
    if op is None or op.draws:
        return
    if UNINITIALIZED_SOURCE in op.names and not op.op.startswith(COMMUNICATION):
        yield Candidate("uninitialized-memory", op.line, LIKELY, (op.description,))
    if op.kind != "op":
        return
    if op.op.startswith(COMPILED_OP) or not op.op.startswith(OWN_NAMESPACES):
        yield Candidate("atomics", op.line, LIKELY, (op.description,), {"op": op.op})
        return
    yield from _judge_facts(case, op)
    if op.unwritten:
        yield Candidate("uninitialized-memory", op.line, POSSIBLE, (op.description,))


def _judge_facts(case: Case, op: StepOp) -> Iterator[Candidate]:
    """Yield what is known about an operation of torch's own."""
    step = case.first.steps[0]
    fact = explain_op(op.op, op.device, step.flags if step is not None else {})
    if fact is None:
        return
    words = {"op": op.op, "advice": fact.advice}
    confidence, experiment = (POSSIBLE, "one-thread") if fact.cause == THREADS else (LIKELY, "")
    evidence = (op.description, f"{op.op} may give other bits because {fact.reason}")
    yield Candidate(fact.cause, op.line, confidence, evidence, words, experiment)
