"""Generators whose values differ between two runs: never seeded, from entropy, or changing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seedless.audit.doctor.case import Case
from seedless.audit.doctor.record_lines import Seed
from seedless.audit.doctor.recorded_run import Process

# How each generator is called in a sentence, and the call that seeds it.
GENERATORS = {
    "python": ("Python's generator", "random.seed(0)"),
    "numpy": ("numpy's global generator", "np.random.seed(0)"),
    "torch": ("torch's generator", "torch.manual_seed(0)"),
    "cuda": ("torch's generator of the GPU", "torch.manual_seed(0)"),
    "numpy-generator": ("a numpy Generator", "np.random.default_rng(0)"),
    "torch-generator": ("a torch.Generator", "generator.manual_seed(0)"),
    "python-generator": ("a random.Random", "random.Random(0)"),
}

SEEDED_BY_TORCH = ("python", "numpy", "torch")  # when a worker starts
FARTHEST_CLOCKS = 2**40  # nanoseconds between two runs: 18 minutes
NEVER, ENTROPY, CHANGING = "never seeded", "seeded from entropy", "seeded with a changing value"


@dataclass(frozen=True)
class RandomSource:
    """A generator whose values differ between the runs.

    Attributes:
        generator: a name of `GENERATORS`.
        why: `NEVER`, `ENTROPY` or `CHANGING`.
        line: the line that draws, or for the last two the line that seeds.
        call: what is called there.
        values: the two seeds, for `CHANGING`.
        worker: it is in a worker of a DataLoader.
        after: how many steps were made before it.
    """

    generator: str
    why: str
    line: str
    call: str
    values: tuple[str | None, str | None] = (None, None)
    worker: bool = False
    after: int = 0


def list_sources(case: Case) -> list[RandomSource]:
    """Return the generators whose values differ between the runs, in main process and workers."""
    if case.pair is None:
        return []
    found = list(_compare_processes(*case.pair, worker=False))
    for one, two in case.pair_workers():
        found.extend(_compare_processes(one, two, worker=True))
    return list(dict.fromkeys(found))


def list_seeds(process: Process, generator: str) -> Sequence[Seed]:
    """Return the calls that seed a generator; those of torch's seed the one of the GPU too.

    The first of a worker is torch's own, from a seed that the main process drew: it follows from
    that draw, and is left out.
    """
    names = ("cuda", "torch") if generator == "cuda" else (generator,)
    own = SEEDED_BY_TORCH if process.start.role == "worker" else ()
    first = {seed.generator: index for index, seed in reversed(list(enumerate(process.seeds)))}
    return [
        seed
        for index, seed in enumerate(process.seeds)
        if seed.generator in names
        and not (seed.generator in own and index == first[seed.generator])
    ]


def describe(generator: str) -> str:
    """Return what a generator is called in a sentence."""
    return GENERATORS.get(generator, (generator, ""))[0]


def describe_source(source: RandomSource) -> str:
    """Return a sentence that says why the values of a generator differ."""
    where = " in a worker of the DataLoader" if source.worker else ""
    place = f"{source.call} at {source.line}" if source.line else source.call
    name = describe(source.generator)
    if source.why == CHANGING:
        left, right = source.values
        return f"{place} seeds {name}{where} with {left} in one run and {right} in the other"
    if source.why == ENTROPY:
        return f"{place} seeds {name}{where} from the operating system's entropy"
    return f"{place} draws from {name}{where}, which no call seeds"


def _compare_processes(one: Process, two: Process, *, worker: bool) -> Iterator[RandomSource]:
    for generator in GENERATORS:
        left, right = (list_seeds(process, generator) for process in (one, two))
        for a, b in zip(left, right, strict=False):
            if (a.value is None and b.value is None) or _is_entropy(generator, a, b):
                yield RandomSource(generator, ENTROPY, a.line, a.call, worker=worker, after=a.after)
            elif a.value != b.value and a.line == b.line:
                yield RandomSource(
                    generator, CHANGING, a.line, a.call, (a.value, b.value), worker, a.after
                )
        if not left and not right and not (worker and _is_seeded_by_torch(one, generator)):
            for draw in one.draws:
                if draw.generator == generator:
                    yield RandomSource(
                        generator, NEVER, draw.line, draw.call, worker=worker, after=draw.after
                    )


def _is_entropy(generator: str, a: Seed, b: Seed) -> bool:
    """Whether two seeds of a torch.Generator are entropy, and no clock: they are far apart.

    Calls of its methods are not seen. What is recorded is the seed that it has when it is used.
    """
    if generator != "torch-generator" or not a.value or not b.value:
        return False
    if not (a.value.isdecimal() and b.value.isdecimal()):
        return False
    return abs(int(a.value) - int(b.value)) > FARTHEST_CLOCKS


def _is_seeded_by_torch(worker: Process, generator: str) -> bool:
    """Whether torch seeded this generator when it started a worker."""
    return any(seed.generator == generator for seed in worker.seeds)
