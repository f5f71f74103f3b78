"""The first step at which two runs of a script differ, and the first value in which they do.

Processes are paired by rank, their steps by number. Within a step the values have a causal order:
weights and batch go in, the output and the loss follow, then the gradients, then the new weights.
The states of the generators are no values: a generator that nobody draws from changes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from seedless.audit.doctor.record_lines import Step
from seedless.audit.doctor.recorded_run import Process, RecordedRun
from seedless.script_recorder.causal_order import CAUSAL_ORDER

# What a difference is called where it is not the name of a value.
INITIAL_WEIGHTS = "initial weights"
STEP_COUNT = "number of steps"
PROCESS_COUNT = "processes"

# What is only looked at: an evaluation between two steps shows here, too. Where it has an effect on
# training, another value differs with it or after it.
OBSERVED = ("indices", "batch", "input", "output")


@dataclass(frozen=True)
class FirstStep:
    """The first difference between two runs.

    Attributes:
        step: the number of the step in its process, from 1.
        what: the first value that differs, "initial weights", "number of steps" or "processes".
        names: every value of that step that differs, in causal order.
        ranks: the ranks in which that step differs.
        processes: the pair of processes that differs first; one is None if only one run has it.
        steps: the pair of steps; one is None where the process had ended.
    """

    step: int
    what: str
    names: tuple[str, ...]
    ranks: tuple[int, ...]
    processes: tuple[Process | None, Process | None]
    steps: tuple[Step | None, Step | None]

    @property
    def place(self) -> tuple[int, int]:
        """The position of the difference: step, then causal order. Earlier ones are smaller."""
        known = {INITIAL_WEIGHTS: 0, **{name: i for i, name in enumerate(CAUSAL_ORDER)}}
        return self.step, known.get(self.what, len(CAUSAL_ORDER))


def find_first_step(a: RecordedRun, b: RecordedRun) -> FirstStep | None:
    """Return the first step at which two runs differ, or None if all their values agree."""
    found = [
        first for one, two in pair_processes(a, b) if (first := _compare(one, two)) is not None
    ]
    if not found:
        return None
    first = min(found, key=lambda one: one.place)
    ranks = sorted({rank for one in found if one.place == first.place for rank in one.ranks})
    return FirstStep(
        first.step, first.what, first.names, tuple(ranks), first.processes, first.steps
    )


def has_effect(a: RecordedRun, b: RecordedRun) -> bool:
    """Whether two runs differ in more than what is only looked at."""
    for one, two in pair_processes(a, b):
        if one is None or two is None or len(one.steps) != len(two.steps):
            return True
        for left, right in zip(one.steps, two.steps, strict=True):
            if any(name not in OBSERVED for name in compare_steps(left, right)):
                return True
    return False


def pair_processes(
    a: RecordedRun, b: RecordedRun
) -> Iterator[tuple[Process | None, Process | None]]:
    """Yield the processes of two runs that made steps, by rank, and within it as they started."""
    ranks = sorted({process.start.rank for process in (*a.training, *b.training)})
    for rank in ranks:
        yield from zip_longest(_select(a, rank), _select(b, rank))


def compare_steps(one: Step, two: Step) -> tuple[str, ...]:
    """Return the names of the values in which two steps differ, in causal order."""
    names = [*CAUSAL_ORDER, *sorted({*one.values, *two.values} - {*CAUSAL_ORDER})]
    return tuple(name for name in names if one.values.get(name) != two.values.get(name))


def compare_generators(one: Process, two: Process) -> Mapping[str, int]:
    """Return for each generator the first step after which its two states differ."""
    found: dict[str, int] = {}
    for left, right in zip(one.steps, two.steps, strict=False):
        for name, state in left.generators.items():
            if right.generators.get(name, state) != state:
                found.setdefault(name, left.step)
    return found


def find_differing_ranks(run: RecordedRun) -> tuple[int, str, tuple[int, ...]] | None:
    """Return where ranks that share their gradients hold unequal weights: step, value, ranks.

    Ranks that train copies of one model use equal gradients, so their weights stay equal if they
    were equal at first. None for one rank, for ranks whose weights are equal, and for ranks whose
    gradients differ: those hold parts of a model, or train models of their own.
    """
    ranks = sorted({process.start.rank for process in run.training})
    processes = [_select(run, rank)[0] for rank in ranks]
    if len(processes) < 2:
        return None
    for steps in zip(*(process.steps for process in processes), strict=False):
        weights = [step.values.get("weights") for step in steps]
        gradients = {step.values.get("gradients") for step in steps}
        if None in weights or None in gradients or len(gradients) > 1 or len(set(weights)) == 1:
            continue
        differing = [
            rank for rank, value in zip(ranks, weights, strict=True) if value != weights[0]
        ]
        before = {step.values.get("weights_before") for step in steps}
        what = "weights" if len(before) == 1 else "weights_before"
        is_start = steps[0].step == 1 and what == "weights_before"
        return steps[0].step, INITIAL_WEIGHTS if is_start else what, tuple(differing)
    return None


def _select(run: RecordedRun, rank: int) -> list[Process]:
    return [process for process in run.training if process.start.rank == rank]


def _compare(one: Process | None, two: Process | None) -> FirstStep | None:
    """Return the first difference between two processes of one rank."""
    known = one or two
    assert known is not None
    ranks = (known.start.rank,)
    if one is None or two is None:
        return FirstStep(1, PROCESS_COUNT, (), ranks, (one, two), (None, None))
    for left, right in zip_longest(one.steps, two.steps):
        pair = (left, right)
        if left is None or right is None:
            number = (left or right).step
            return FirstStep(number, STEP_COUNT, (), ranks, (one, two), pair)
        if names := compare_steps(left, right):
            is_start = names[0] == "weights_before" and left.step == one.steps[0].step
            what = INITIAL_WEIGHTS if is_start else names[0]
            return FirstStep(left.step, what, names, ranks, (one, two), pair)
    return None
