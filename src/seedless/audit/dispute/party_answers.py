"""The answers of a party to a dispute, each checked for its form and against earlier ones.

A party commits itself first: its trail fixes the state after the epoch, its list of steps fixes
every record of a step, its list of operations every record of an operation. An answer that does not
fit what it is committed to raises `PartyError`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from seedless.audit.dispute.op_call import read_tensor
from seedless.audit.dispute.party import SCHEMA, digest_operation
from seedless.audit.dispute.party_process import Party, PartyError
from seedless.core.bounded_reading import MAX_JSON_BYTES
from seedless.core.digests import digest_each, digest_value, is_digest
from seedless.core.errors import SeedlessError
from seedless.proof.trail import GENESIS
from seedless.runs.validation import ValidatedRun
from seedless.script_recorder.op_record import UNINITIALIZED, OpRecord

MAX_INPUT_BYTES = 256 * 2**20
MAX_OPERATIONS = 200_000
_TENSOR_DIGEST = re.compile(r"[0-9a-f]{64}")
_OP = re.compile(r"[\w.]{1,200}", re.ASCII)
_STEP_FIELDS = {"step", "batch", "rate", "state", "losses"}


@dataclass(frozen=True)
class Place:
    """The disputed epoch, and the epoch of the last checkpoint before it that both parties have."""

    epoch: int
    start: int


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two parties: its name, its run, and who answers for it."""

    name: str
    run: ValidatedRun
    party: Party

    def ask(self, place: Place, ask: str, *, max_bytes: int = MAX_JSON_BYTES, **more: int) -> Any:
        """Return the answer to one request about a place."""
        request = {
            "schema": SCHEMA,
            "ask": ask,
            "run": self.run.claims["digest"],
            "epoch": place.epoch,
            "start": place.start,
            **more,
        }
        return self.party.ask(request, max_bytes)

    @property
    def steps_done(self) -> list[int]:
        """How many steps were done at the end of each epoch, by its trail."""
        return [entry["step"] for entry in self.run.trail]


@dataclass(frozen=True, eq=False)
class DisputedStep:
    """The first step that differs.

    Attributes:
        place: its epoch.
        number: counted from 1 over the whole run.
        before: name -> digest of every tensor before it, on which both agree.
    """

    place: Place
    number: int
    before: Mapping[str, str]

    @property
    def location(self) -> str:
        """Where it is, in words."""
        return f"in epoch {self.place.epoch}, step {self.number}"

    def as_dict(self) -> dict[str, Any]:
        """Where it is, as plain values."""
        return {"epoch": self.place.epoch, "step": self.number}


def ask_steps(side: Side, place: Place) -> list[str]:
    """Return the chained digests of an epoch's steps, which must lead to the party's own trail."""
    # [Step 1] A digest for each step of the epoch.
    steps = side.ask(place, "steps")
    begin, end = side.steps_done[place.epoch - 1 : place.epoch + 1]
    if not _is_digest_list(steps) or len(steps) != end - begin:
        raise PartyError(f"expected {end - begin} digests of steps")
    # [Step 2] The last one must hold the state that the trail has at the end of the epoch.
    last = ask_record(side, place, steps, end)
    recorded = side.run.trail[place.epoch]["state"]
    if any(last["state"].get(n) != recorded[n] for n in recorded if not n.startswith("order/")):
        raise PartyError("the steps do not lead to the state that its own trail has")
    return list(steps)


def ask_record(side: Side, place: Place, steps: list[str], step: int) -> dict[str, Any]:
    """Return the record of a step, which must have the digest in the list of steps."""
    record = side.ask(place, "record", step=step)
    index = step - 1 - side.steps_done[place.epoch - 1]
    previous = steps[index - 1] if index else GENESIS
    try:
        fits = digest_value({**record, "previous": previous}) == steps[index]
        fits = fits and {*record} == _STEP_FIELDS and record["step"] == step
        fits = fits and {*record["state"]} == {*side.run.trail[place.epoch]["state"]}
    except (SeedlessError, TypeError, AttributeError, LookupError):
        fits = False
    if not fits:
        raise PartyError(f"the record of step {step} does not have the digest it gave before")
    return dict(record)


def ask_operations(side: Side, step: DisputedStep) -> list[str]:
    """Return the digests of a step's operations."""
    operations = side.ask(step.place, "operations", step=step.number)
    if not _is_digest_list(operations) or not 0 < len(operations) <= MAX_OPERATIONS:
        raise PartyError("expected digests of the operations of a step")
    return list(operations)


def ask_operation(
    side: Side, step: DisputedStep, operations: list[str], index: int
) -> OpRecord | None:
    """Return the record of an operation, which must have the digest in the list; None past it."""
    if index >= len(operations):
        return None
    record = read_operation(side.ask(step.place, "operation", step=step.number, index=index))
    if digest_operation(record) != operations[index]:
        raise PartyError(f"the record of operation {index} does not have the digest it gave before")
    return record


def ask_state(side: Side, step: DisputedStep, max_bytes: int) -> dict[str, Tensor]:
    """Return the state before a step, whose tensors must have the digests both agreed on."""
    sent = side.ask(step.place, "state", step=step.number, max_bytes=max_bytes)
    if not isinstance(sent, dict) or {*sent} != {*step.before}:
        raise PartyError(f"expected the state before step {step.number}")
    state = {name: read_tensor(value) for name, value in sent.items()}
    if digest_each(state) != step.before:
        raise PartyError(f"the state it sent is not the one agreed on before step {step.number}")
    return state


def read_operation(values: Any) -> OpRecord:
    """Return the record of an operation from plain values; refuse any other form."""
    try:
        record = OpRecord.from_dict(values)
        lists = (record.inputs, record.sources, record.settings, record.outputs, record.shapes)
        texts = (record.phase, record.module, record.note, *record.sources, *record.settings)
        results = (*record.inputs, *record.outputs)
        fits = (
            all(isinstance(one, tuple) for one in lists)
            and all(isinstance(text, str) and _is_short(text) for text in (*texts, *results))
            and _OP.fullmatch(record.op) is not None
            and len(record.inputs) == len(record.sources)
            and len(record.outputs) == len(record.shapes)
            and all(_TENSOR_DIGEST.fullmatch(i) or i == UNINITIALIZED for i in record.inputs)
            and all(type(size) is int for shape in record.shapes for size in shape)
            and not (record.line or record.draws)  # no party has these to say
        )
    except (TypeError, AttributeError):
        fits = False
    if not fits:
        raise PartyError("expected the record of an operation")
    return record


def list_fields(names: Sequence[str]) -> str:
    """Return in words that things differ: all of up to three, or three and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} differ{'s' * (len(names) == 1)}"


def _is_short(text: str) -> bool:
    return len(text) <= 2_000 and text.isprintable()


def _is_digest_list(values: Any) -> bool:
    return isinstance(values, list) and all(map(is_digest, values))
