"""What `seedless doctor` answers, and the order in which the rules are asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from seedless.audit.doctor.case import CERTAIN, POSSIBLE, Candidate, Case
from seedless.audit.doctor.causes import CAUSES
from seedless.audit.doctor.draw_rules import judge_draw, judge_random_sources, judge_states
from seedless.audit.doctor.environment_rules import (
    judge_files,
    judge_flags,
    judge_program,
    judge_variables,
)
from seedless.audit.doctor.first_step import STEP_COUNT
from seedless.audit.doctor.hash_order import judge_parameter_order
from seedless.audit.doctor.op_rules import judge_op
from seedless.audit.doctor.outside_rules import judge_outside_values
from seedless.audit.doctor.value_rules import judge_foreign_writes, judge_python_value
from seedless.script_recorder.causal_order import CAUSAL_ORDER

UNKNOWN = "unknown"
NO_LINE = "the line that makes the first step"


@dataclass(frozen=True)
class Diagnosis:
    """Whether two runs are identical, and if not, what differs first and why.

    Attributes:
        identical: every value that was recorded agrees; None where that could not be told.
        step: the first step that differs, from 1.
        what: the first value that differs, as "loss" or "initial weights".
        op: the first operation that differs, or "".
        module: the module that ran it, or "".
        line: the line to change, as "path:line", or "".
        cause: a code of `CAUSES`, or "" for identical runs.
        title: the cause in words.
        remedy: one sentence that says what to change.
        confidence: "certain", "likely" or "possible".
        ranks: the ranks that differ.
        evidence: sentences that say what was observed.
        experiments: what was tried to confirm the cause, each with its result.
        steps: how many steps were compared.
        intermittent: another pair of runs did not differ.
        reason: why it could not be told whether the runs are identical.
    """

    identical: bool | None
    step: int | None = None
    what: str = ""
    op: str = ""
    module: str = ""
    line: str = ""
    cause: str = ""
    title: str = ""
    remedy: str = ""
    confidence: str = ""
    ranks: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()
    experiments: tuple[dict[str, Any], ...] = ()
    steps: int = 0
    intermittent: bool = False
    reason: str = ""


def list_candidates(case: Case) -> list[Candidate]:
    """Return the causes that the records speak for, the most plausible first, each once."""
    found: dict[tuple[str, str], Candidate] = {}
    for candidate in _ask_rules(case):
        found.setdefault((candidate.cause, candidate.line), candidate)
    return list(found.values())


def make_diagnosis(case: Case, candidate: Candidate | None) -> Diagnosis:
    """Return the answer for a cause; for None, one that says the cause is unknown."""
    chosen = candidate or Candidate(UNKNOWN, confidence=POSSIBLE)
    first, op = case.first, case.op
    step = first.steps[0] or first.steps[1]
    line = chosen.line or (op.line if op is not None else "") or (step.line if step else "")
    title, remedy = fill_remedy(chosen, line, op.op if op is not None else "an operation")
    return Diagnosis(
        identical=False,
        step=first.step,
        what=first.what,
        op=chosen.words.get("op", op.op if op is not None else ""),
        module=chosen.words.get("module", op.module if op is not None else ""),
        line=line,
        cause=chosen.cause,
        title=title,
        remedy=remedy,
        confidence=chosen.confidence,
        ranks=first.ranks,
        evidence=(*_describe_case(case), *chosen.evidence),
    )


def fill_remedy(candidate: Candidate, line: str, op: str = "an operation") -> tuple[str, str]:
    """Return the title and the remedy of a candidate's cause, with their words filled in."""
    words = {
        "op": op,
        "generator": "the generator",
        "call": "its seed function",
        "name": "it",
        "earlier": "",
        "stable": "sorted(...)",
        "advice": "replace it by an operation with a deterministic form",
        **candidate.words,
        "line": line or NO_LINE,
    }
    cause = CAUSES[candidate.cause]
    return _fill(cause.title, words), _fill(cause.remedy, words)


def add_evidence(diagnosis: Diagnosis, *sentences: str) -> Diagnosis:
    """Return a diagnosis with further sentences, each once."""
    return replace(diagnosis, evidence=tuple(dict.fromkeys((*diagnosis.evidence, *sentences))))


def confirm(candidate: Candidate, sentence: str) -> Candidate:
    """Return a candidate that an experiment has confirmed."""
    return replace(candidate, confidence=CERTAIN, evidence=(*candidate.evidence, sentence))


def _ask_rules(case: Case) -> Iterator[Candidate]:
    # [Step 1] Two programs: nothing else can be concluded from them.
    yield from judge_program(case)
    # [Step 2] Variables and flags whose effect is known. Of a variable of the script's own only the
    # effect tells anything, so it comes last.
    variables = list(judge_variables(case))
    yield from (one for one in variables if one.cause != "settings")
    yield from judge_flags(case)
    if case.varied:
        yield from variables
    # [Step 3] The first operation that differs, if pass 2 found it.
    values = list(judge_python_value(case))
    known = {one.line for one in values if one.confidence != POSSIBLE}
    outside = list(judge_outside_values(case, known))
    if case.first.what == STEP_COUNT:  # every value agrees: only a clock or a file ends a run
        yield from outside
    yield from judge_parameter_order(case)
    if (draw := judge_draw(case)) is not None:
        yield draw
    yield from judge_op(case)
    writes = list(judge_foreign_writes(case))
    yield from (one for one in writes if one.confidence != POSSIBLE)
    # [Step 4] Files, and generators whose draws no operation shows.
    yield from judge_files(case)
    yield from judge_states(case)
    yield from judge_random_sources(case)
    # [Step 5] What no seed fixes: a seed may come from a clock, too.
    yield from outside
    yield from writes
    yield from values
    yield from variables


def _describe_case(case: Case) -> Iterator[str]:
    """Yield what differs at the first step, and what agreed before it."""
    first = case.first
    if first.names:
        known = ", ".join(first.names)
        yield f"at step {first.step} these values differ: {known}"
    one, two = first.steps
    if one is not None and two is not None:
        for name in ("loss", "rate", "scale"):
            left, right = one.shown.get(name), two.shown.get(name)
            if left is not None and right is not None and left != right:
                yield f"{name} at step {first.step}: {left} against {right}"
    for group, names in sorted(case.tensors.items(), key=_find_place)[:1]:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"tensors that differ in {group}: {', '.join(names[:3])}{more}"
    if case.op is not None:
        yield case.op.description


def _find_place(item: tuple[str, object]) -> int:
    return CAUSAL_ORDER.index(item[0]) if item[0] in CAUSAL_ORDER else len(CAUSAL_ORDER)


def _fill(sentence: str, words: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: words[found[1]], sentence)
