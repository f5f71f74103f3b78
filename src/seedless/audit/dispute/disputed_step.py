"""Within a disputed epoch: the first step, and its first operation, in which two parties differ.

Whoever is right is found by executing that operation alone, where its inputs are agreed on, and
otherwise by executing the step from the state before it, which is agreed on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from torch import Tensor

from seedless.audit.dispute.op_call import execute_call
from seedless.audit.dispute.party import AnsweringRun, digest_operation, find_start
from seedless.audit.dispute.party_answers import (
    MAX_INPUT_BYTES,
    DisputedStep,
    Place,
    Side,
    ask_operation,
    ask_operations,
    ask_record,
    ask_state,
    ask_steps,
    list_fields,
)
from seedless.audit.dispute.party_process import PartyError
from seedless.audit.dispute.recorded_step import StepResult, find_position
from seedless.audit.dispute.ruling import Ruling, make_ruling
from seedless.audit.first_difference import find_first_difference
from seedless.core.errors import SeedlessError
from seedless.core.mismatch import compare_values
from seedless.script_recorder.op_record import OpRecord


@dataclass(frozen=True, eq=False)
class Case:
    """Two parties, and the referee's own execution of the configuration both have."""

    a: Side
    b: Side
    judge: AnsweringRun

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both parties."""
        return self.a, self.b


def judge_steps(case: Case, place: Place) -> Ruling:
    """Find the first step and operation that differ, and derive what is right there.

    Raises `PartyError` where a party's answers do not allow it.
    """
    # [Step 1] The first step. Each party's list is bound to its own trail.
    lists = [ask_side(side, partial(ask_steps, place=place)) for side in case.sides]
    index = find_first_unequal(*lists)
    if index is None or index >= min(map(len, lists)):
        raise PartyError("the parties' steps agree, as far as both have them")
    number = case.a.steps_done[place.epoch - 1] + index + 1
    records = [
        ask_side(side, partial(ask_record, place=place, steps=steps, step=number))
        for side, steps in zip(case.sides, lists, strict=True)
    ]
    # [Step 2] The state before it, on which both agree.
    before = case.a.run.trail[place.epoch - 1]["state"]
    if index:
        record = ask_either(case, partial(ask_record, place=place, steps=lists[0], step=number - 1))
        before = record["state"]
    step = DisputedStep(place, number, before)
    # [Step 3] The first operation of the step.
    known = [ask_side(side, partial(ask_operations, step=step)) for side in case.sides]
    at = find_first_unequal(*known)
    if at is None:
        return judge_step(case, step, records)
    pair = [
        ask_side(side, partial(ask_operation, step=step, operations=ops, index=at))
        for side, ops in zip(case.sides, known, strict=True)
    ]
    return judge_operation(case, step, at, pair)


def judge_step(case: Case, step: DisputedStep, records: Sequence[Mapping[str, Any]]) -> Ruling:
    """Execute the step where its operations agree: something else changed the state."""
    here = execute_step(case, step).record
    names = [mismatch.field for mismatch in compare_values(records[0], records[1])]
    return make_ruling(
        [not compare_values(here, record) for record in records],
        f"{step.location}, the operations agree, and {list_fields(names)}; executed here",
        place={**step.as_dict(), "names": names},
        settled_by="one step",
    )


def judge_operation(
    case: Case, step: DisputedStep, at: int, pair: Sequence[OpRecord | None]
) -> Ruling:
    """Derive what is right of the first operation that differs.

    Args:
        case: the parties.
        step: the step of the operation.
        at: its position, which is also how many agree before it.
        pair: its record by each party; None where a party's step has ended.
    """
    # [Step 1] Only the result differs: execute this one operation on the inputs both agree on.
    one, two = pair
    if one is not None and two is not None and find_kind(one, two) == "op":
        result = execute_operation(case, step, at, one)
        if result is not None:
            return make_ruling(
                [result.outputs == record.outputs for record in (one, two)],
                f"{step.location}, operation {at + 1}, {name_operation(one)}: its result differs; "
                "executed here on the inputs both agree on",
                place={**step.as_dict(), "operation": at + 1, "op": one.op, "kind": "op"},
                settled_by="one operation",
            )
    # [Step 2] Anything else: execute the step, and take its operation at this position.
    operations = execute_step(case, step).operations
    here = operations[at] if at < len(operations) else None
    agree = [_digest(record) == _digest(here) for record in pair]
    # [Step 3] Say what the wrong one differs in, by the names that tensors have here.
    wrong = one if agree[1] else two
    finding = find_first_difference([here] if here else [], [wrong] if wrong else [])
    kind = finding.kind if finding is not None else "program"
    names = list(finding.names) if finding is not None else []
    what = {
        "source": f"{list_fields(names)} on entering it",
        "setting": "its settings differ",
        "op": "its result differs",
        "program": "not the same operations are performed",
    }[kind]
    named = name_operation(here) if here is not None else "after the last one"
    return make_ruling(
        agree,
        f"{step.location}, operation {at + 1}, {named}: {what}; derived by executing the step here",
        place={
            **step.as_dict(),
            "operation": at + 1,
            "op": here.op if here is not None else "",
            "kind": kind,
            "names": names,
        },
        settled_by="one step",
    )


def find_kind(one: OpRecord, two: OpRecord) -> str:
    """Return what two records of an operation differ in, as a `Finding` names it."""
    finding = find_first_difference([one], [two])
    return finding.kind if finding is not None else ""


def name_operation(record: OpRecord) -> str:
    """Return an operation with its module and phase, in words."""
    module = f" in module {record.module}" if record.module else ""
    return f"{record.op}{module} ({record.phase})"


def _digest(record: OpRecord | None) -> str | None:
    return None if record is None else digest_operation(record)


def execute_operation(case: Case, step: DisputedStep, at: int, agreed: OpRecord) -> OpRecord | None:
    """Execute one operation with inputs from a party; None where no party sends the agreed ones.

    The inputs are those agreed on if operation, input digests and settings come out as agreed.
    """
    for side in case.sides:
        try:
            call = side.ask(
                step.place, "inputs", step=step.number, index=at, max_bytes=MAX_INPUT_BYTES
            )
            record = execute_call(agreed.op, call)
        except SeedlessError:
            continue
        known = (agreed.op, agreed.inputs, agreed.settings)
        if (record.op, record.inputs, record.settings) == known:
            return record
    return None


def execute_step(case: Case, step: DisputedStep) -> StepResult:
    """Execute the step here, from the state both agree on."""
    execution = case.judge.execution
    position = find_position(case.a.run.trail[step.place.epoch - 1], step.number)
    state: Mapping[str, Tensor]
    if not position.batch and step.place.start == position.epoch:
        state, _ = find_start(case.judge.run, execution, step.place.start)
    else:
        size = sum(tensor.nbytes for tensor in execution.beginning.values())
        most = 2 * size + 1_000 * len(execution.beginning) + 2**20  # base64, names and shapes
        state = ask_either(case, partial(ask_state, step=step, max_bytes=most))
    try:
        return execution.run_step(state, position)
    except SeedlessError as error:
        raise PartyError(f"the step that both state cannot be executed: {error}") from None


def ask_either(case: Case, ask: Callable[[Side], Any]) -> Any:
    """Return what one of the parties answers consistently, where both agree on what is right."""
    reasons = []
    for side in case.sides:
        try:
            return ask_side(side, ask)
        except PartyError as error:
            reasons.append(str(error))
    raise PartyError("; ".join(reasons))


def ask_side(side: Side, ask: Callable[[Side], Any]) -> Any:
    """Return a party's answer; an error about it names the party."""
    try:
        return ask(side)
    except SeedlessError as error:
        raise PartyError(f"{side.name}: {error}") from None


def find_first_unequal(one: Sequence[str], two: Sequence[str]) -> int | None:
    """Return the first position at which two lists differ, or None."""
    pairs = enumerate(zip_longest(one, two))
    return next((position for position, (left, right) in pairs if left != right), None)
