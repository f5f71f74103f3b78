"""What a party to a dispute is asked, and how a run answers by executing itself again.

A request is one line of JSON, and so is its answer. Every request has "schema", "run" (the digest
of the receipt), "epoch" (the disputed one) and "start" (the epoch of the last agreed checkpoint).

    ask          more in the request   the answer under the same name
    steps                              digest of the record of each step of the epoch, chained
    record       step                  the record of that step, without the chain's two fields
    operations   step                  digest of the record of each operation of that step
    operation    step, index           that record
    inputs       step, index           arguments of that operation, tensors with their elements
    state        step                  the tensors before that step, by name, with their elements

A request that cannot be answered gets {"error": "why"}.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import IO, Any

from torch import Tensor

from seedless.audit.dispute.op_call import describe_tensor
from seedless.audit.dispute.party_process import PartyError
from seedless.audit.dispute.recorded_step import Execution, StepResult, find_position
from seedless.audit.reexecution import choose_device
from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json
from seedless.core.digests import digest_each, digest_value
from seedless.core.errors import RunError, SeedlessError
from seedless.proof.trail import TrailEntry
from seedless.runs.prepare import Preparer
from seedless.runs.validation import ValidatedRun
from seedless.script_recorder.op_record import OpRecord
from seedless.train.checkpoint import CHECKPOINT_FOLDER, checkpoint_file_name, read_checkpoint
from seedless.train.progress_state import Position, Start

SCHEMA = "seedless.referee/1"
MAX_REQUEST_BYTES = 2**16

Request = Mapping[str, Any]


def digest_operation(record: OpRecord) -> str:
    """Return the digest of what an operation did; names that only explain it are left out."""
    values = record.as_dict()
    return digest_value({key: values[key] for key in values if key not in ("sources", "note")})


class AnsweringRun:
    """A run that answers a referee's requests by executing itself again, on the CPU.

    Args:
        run: consistent with its receipt, in portable arithmetic.
        preparer: turns its configuration into a training problem.
    """

    execution_type = Execution

    def __init__(self, run: ValidatedRun, preparer: Preparer) -> None:
        self.run, self._preparer = run, preparer
        self._answers: dict[str, Callable[[Request], Any]] = {
            "steps": lambda request: [one["digest"] for one in self.execute_epoch(request)[0]],
            "record": self._find_record,
            "operations": lambda request: [
                digest_operation(r) for r in self._list_operations(request)
            ],
            "operation": lambda request: self._list_operations(request)[request["index"]].as_dict(),
            "inputs": lambda request: self._execute_step(request, request["index"]).call,
            "state": self._describe_state,
        }
        # The last result of each kind, with what it was executed for.
        self._epoch: tuple[Any, tuple[list[TrailEntry], TrailEntry]] | None = None
        self._state: tuple[Any, dict[str, Tensor]] | None = None
        self._step: tuple[Any, StepResult] | None = None

    @cached_property
    def execution(self) -> Execution:
        """The run, prepared once for all requests."""
        config = choose_device(self.run, "cpu")
        assert config is not None  # only a missing GPU gives None
        # Portable bits do not depend on micro-batches. In one piece, each operation has the result
        # that it has alone; in pieces, a sum over the batch is completed later.
        whole = config.change(train={"microbatch": None})
        return self.execution_type(self._preparer(whole))

    def answer(self, request: Request) -> dict[str, Any]:
        """Return the answer to one request."""
        ask = request["ask"]
        if request["schema"] != SCHEMA or ask not in self._answers:
            raise RunError(f"expected a request of {SCHEMA} for {', '.join(self._answers)}")
        if request["run"] != self.run.claims["digest"]:
            raise RunError("the request is about another run")
        return {ask: self._answers[ask](request)}

    def execute_epoch(self, request: Request) -> tuple[list[TrailEntry], TrailEntry]:
        """Return the chained records of an epoch's steps, and the entry that ends it."""
        key = (request["start"], request["epoch"])
        if self._epoch is None or self._epoch[0] != key:
            state, start = find_start(self.run, self.execution, request["start"])
            self._epoch = (key, self.execution.run_epoch(state, start, request["epoch"]))
        return self._epoch[1]

    def _find_record(self, request: Request) -> dict[str, Any]:
        for record in self.execute_epoch(request)[0]:
            if record["step"] == request["step"]:
                return {key: record[key] for key in record if key not in ("previous", "digest")}
        raise RunError(f"epoch {request['epoch']} has no step {request['step']}")

    def _list_operations(self, request: Request) -> tuple[OpRecord, ...]:
        """Return the records of a step's operations."""
        key = (request["start"], request["step"])
        if self._step is None or self._step[0] != key:
            self._step = (key, self._execute_step(request))
        return self._step[1].operations

    def _execute_step(self, request: Request, wanted: int | None = None) -> StepResult:
        """Execute one step alone, and keep the arguments of one operation."""
        position = self._find_position(request)
        return self.execution.run_step(self._find_state(request, position), position, wanted)

    def _describe_state(self, request: Request) -> dict[str, Any]:
        state = self._find_state(request, self._find_position(request))
        return {name: describe_tensor(value) for name, value in state.items()}

    def _find_position(self, request: Request) -> Position:
        return find_position(self.run.trail[request["epoch"] - 1], request["step"])

    def _find_state(self, request: Request, position: Position) -> dict[str, Tensor]:
        """Return the state before a step."""
        key = (request["start"], position)
        if self._state is None or self._state[0] != key:
            state, start = find_start(self.run, self.execution, request["start"])
            self._state = (key, self.execution.find_state(state, start, position))
        return self._state[1]


class LocalParty:
    """Answers for a run by executing it in this process.

    Attributes:
        exchanged: bytes that the requests and answers would have had on the way.
    """

    def __init__(self, run: AnsweringRun) -> None:
        self.exchanged = 0
        self._run = run

    def ask(self, request: Request, max_bytes: int = MAX_JSON_BYTES) -> Any:
        """Return the answer to a request."""
        named = {**request, "run": self._run.run.claims["digest"]}
        try:
            answer = json.dumps(self._run.answer(named))
        except SeedlessError as error:
            raise PartyError(str(error)) from None
        if len(answer) > max_bytes:
            raise PartyError(f"its answer has more than {max_bytes:,} bytes")
        self.exchanged += len(json.dumps(named)) + len(answer) + 2  # two line feeds
        return json.loads(answer)[request["ask"]]


def find_start(
    run: ValidatedRun, execution: Execution, epoch: int
) -> tuple[Mapping[str, Tensor], Start]:
    """Return the state and position of the checkpoint of an epoch; 0 is the run's beginning.

    The checkpoint is read after the validation, so its state is compared with the trail again.
    """
    if epoch == 0:
        return execution.beginning, Start()
    path = run.path / CHECKPOINT_FOLDER / checkpoint_file_name(Position(epoch))
    checkpoint = read_checkpoint(path, run.config.digest)
    if digest_each(checkpoint.state) != run.trail[epoch]["state"]:
        raise RunError(f"{path} was changed: it does not have the state that the trail records")
    return checkpoint.state, checkpoint.start


def serve_requests(run: AnsweringRun, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests, one line each, until there are no more."""
    while line := requests.readline(MAX_REQUEST_BYTES):
        try:
            found = run.answer(parse_json(line, "the request"))
        except (LookupError, TypeError) as error:
            found = {"error": f"the request does not have the form of one: {error!r}"}
        except SeedlessError as error:
            found = {"error": str(error)}
        answers.write(json.dumps(found).encode() + b"\n")
        answers.flush()
