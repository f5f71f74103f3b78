"""What is known about two runs that differ, and what a rule concludes from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from seedless.audit.doctor.first_step import FirstStep
from seedless.audit.doctor.recorded_run import Process, RecordedRun
from seedless.audit.doctor.step_ops import StepOp

CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"


@dataclass(frozen=True)
class Case:
    """Two runs that differ.

    Attributes:
        runs: the two runs.
        first: where they differ first.
        op: the first operation of that step that differs, where pass 2 found one.
        draws: every draw of that step that differs although its inputs agree, in order.
        tensors: names of the tensors that differ in that step, by group.
        reordered: the optimizer has the same weights in both runs, in another order.
        thread_lines: the lines of that step that start threads.
        compiled_line: the line that calls compiled code, in the run that does; or "".
        varied: variables of the environment that were changed on purpose, with both values.
    """

    runs: tuple[RecordedRun, RecordedRun]
    first: FirstStep
    op: StepOp | None = None
    draws: tuple[StepOp, ...] = ()
    tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reordered: bool = False
    thread_lines: tuple[str, ...] = ()
    compiled_line: str = ""
    varied: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)

    @property
    def pair(self) -> tuple[Process, Process] | None:
        """The two processes that differ first; None if only one run has that process."""
        one, two = self.first.processes
        return (one, two) if one is not None and two is not None else None

    def pair_workers(self) -> Iterator[tuple[Process, Process]]:
        """Yield the workers of the two processes, in the order of their numbers."""
        if self.pair is None:
            return
        workers = [
            run.list_workers(process) for run, process in zip(self.runs, self.pair, strict=True)
        ]
        yield from zip(*workers, strict=False)


@dataclass(frozen=True)
class Candidate:
    """A cause that the records speak for.

    Attributes:
        cause: its code, one of `CAUSES`.
        line: the line to change, as "path:line", or "".
        confidence: "certain" where the records prove it; "likely" or "possible" otherwise.
        evidence: sentences that say what was observed.
        words: what the remedy's sentence needs beside the line.
        experiment: the experiment that would confirm it, or "".
    """

    cause: str
    line: str = ""
    confidence: str = LIKELY
    evidence: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    experiment: str = ""
