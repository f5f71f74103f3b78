"""Causes that are operations: their inputs are equal, and their outputs are not."""

from collections.abc import Iterator

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.op_facts import SWITCH, THREADS, explain_op
from seedless.audit.doctor.step_ops import COMPILED_OP, StepOp

DETERMINISTIC = "deterministic"  # the experiment
UNINITIALIZED_SOURCE = "uninitialized memory"
COMMUNICATION = ("c10d.", "_c10d_functional.")  # their buffers are written, not read
OWN_NAMESPACES = ("aten.", "prims.", "c10d.", "_c10d_functional.", "profiler.")


def judge_op(case: Case) -> Iterator[Candidate]:
    """Yield causes for the first operation that differs, if it is no draw."""
    op = case.op
    if op is None and case.first.what == "gradients":
        sentence = "inputs, weights and loss agree, and the gradients that follow from them do not"
        yield Candidate(
            "nondeterministic-op", "", POSSIBLE, (sentence,), {"advice": SWITCH}, DETERMINISTIC
        )
    if op is None or op.draws:
        return
    is_uninitialized = any(UNINITIALIZED_SOURCE in name for name in op.names)
    if is_uninitialized and not op.op.startswith(COMMUNICATION):
        yield _judge_unwritten(op)
    if op.kind != "op":
        return
    if op.op.startswith(COMPILED_OP) or not op.op.startswith(OWN_NAMESPACES):
        # The switch changes what torch's compiler makes, and no kernel of the script's own.
        experiment = DETERMINISTIC if op.op.startswith(COMPILED_OP) else ""
        yield Candidate("atomics", op.line, LIKELY, (op.description,), {"op": op.op}, experiment)
        return
    yield from _judge_facts(case, op)
    if op.unwritten:
        yield Candidate("uninitialized-memory", op.line, POSSIBLE, (op.description,))


def _judge_unwritten(op: StepOp) -> Candidate:
    """Return the cause for an operation that reads memory to which nothing was written."""
    evidence = [op.description]
    if op.origins:
        made = op.origins[0]
        evidence.append(f"its memory was made at {made}, and no operation wrote to all of it")
    line = op.origins[0] if op.origins else op.line
    experiment = DETERMINISTIC  # the switch fills such memory
    return Candidate("uninitialized-memory", line, LIKELY, tuple(evidence), {}, experiment)


def _judge_facts(case: Case, op: StepOp) -> Iterator[Candidate]:
    """Yield what is known about an operation of torch's own."""
    step = case.first.steps[0]
    fact = explain_op(op.op, op.device, step.flags if step is not None else {})
    if fact is None:
        return
    words = {"op": op.op, "advice": fact.advice}
    is_threads = fact.cause == THREADS
    confidence, experiment = (POSSIBLE, "one-thread") if is_threads else (LIKELY, DETERMINISTIC)
    evidence = (op.description, f"{op.op} may give other bits because {fact.reason}")
    yield Candidate(fact.cause, op.line, confidence, evidence, words, experiment)
