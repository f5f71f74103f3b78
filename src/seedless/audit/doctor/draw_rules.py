"""Causes that are draws: which generator, who drew, at which line, and why its state differs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.first_step import INITIAL_WEIGHTS, compare_generators
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

_SHUFFLE = re.compile(r"randperm|shuffle|permutation|sample$|sample\b|choices?\b")
_DROPOUT = re.compile(r"dropout|droppath|drop_path|stochasticdepth", re.IGNORECASE)

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


def judge_draw(case: Case) -> Candidate | None:
    """Return the cause if the first operation that differs is a draw."""
    op = case.op
    if op is None or not op.draws or op.kind not in ("op", "draw", "source") or case.pair is None:
        return None
    family = "cuda" if op.draws.startswith("cuda") else op.draws
    if op.generator_given and family in ("torch", "cuda"):
        family = "torch-generator"
    call = op.op.partition(" at ")[0]
    evidence = [
        f"{call} at {op.line or 'an unknown line'} draws from {describe(family)}, and its "
        "inputs agree while its values differ"
    ]
    sources = [
        source
        for source in list_sources(case)
        if source.generator == family and source.why != NEVER and not source.worker
    ]
    cause = _classify(case, call, op.module, op.line)
    line = op.line
    words = _describe_words(family)
    if sources:
        chosen = sources[-1]
        evidence.append(_describe_source(chosen))
        if chosen.why == CHANGING:
            cause = "time-seed"
        line = chosen.line or line
    elif seeds := _list_seeds(case.pair[0], family):
        places = ", ".join(dict.fromkeys(f"{seed.call} at {seed.line}" for seed in seeds[:3]))
        evidence.append(
            f"{describe(family)} is seeded with the same value in both runs ({places}), "
            "so this draw comes before that call, or another number of draws came before it"
        )
    else:
        evidence.append(f"no call seeds {describe(family)} in this process")
    experiment = _name_experiment(family, changing=cause == "time-seed")
    return Candidate(cause, line, LIKELY, tuple(evidence), words, experiment)


def judge_states(case: Case) -> Iterator[Candidate]:
    """Yield causes where a global generator is not in the same state, and nobody seeded it alike.

    For steps whose operations are not known: who drew is not known either.
    """
    if case.pair is None or case.op is not None:
        return
    first_steps = compare_generators(*case.pair)
    families = ("torch", "cuda", "numpy", "python")
    if case.first.what in ("batch", "input"):
        families = ("numpy", "python", "torch", "cuda")
    for family in families:
        differing = [step for name, step in first_steps.items() if name.partition(":")[0] == family]
        if not differing or min(differing) > case.first.step or _list_seeds(case.pair[0], family):
            continue
        evidence = (
            f"the state of {describe(family)} differs after step {min(differing)}",
            f"no call seeds {describe(family)} in this process",
        )
        cause = _classify(case, "", "", "")
        experiment = _name_experiment(family, changing=False)
        yield Candidate(cause, "", LIKELY, evidence, _describe_words(family), experiment)


def judge_random_sources(case: Case) -> Iterator[Candidate]:
    """Yield causes where no operation shows the draw: in workers, or in an object's own generator.

    The most plausible come first: draws in workers if a batch differs, then seeds that change, then
    seeds from entropy, then draws from a generator that nobody seeded.
    """
    is_data = case.first.what in ("indices", "batch", "input", "output", "loss", "number of steps")
    before = [source for source in list_sources(case) if source.after < case.first.step]
    order = {CHANGING: 0, ENTROPY: 1, NEVER: 2}
    before.sort(
        key=lambda one: (
            one.generator == "python-generator",
            one.worker != is_data,
            order[one.why],
            -one.after,
        )
    )
    for source in before:
        cause = "worker-draws" if source.worker else _classify(case, source.call, "", source.line)
        if source.why == CHANGING and source.line:
            cause = "time-seed"
        family = source.generator
        yield Candidate(
            cause,
            source.line,
            POSSIBLE,
            (_describe_source(source),),
            _describe_words(family),
            _name_experiment(family, changing=source.why == CHANGING),
        )


def list_sources(case: Case) -> list[RandomSource]:
    """Return the generators whose values differ between the runs, in main process and workers."""
    if case.pair is None:
        return []
    found = list(_compare_processes(*case.pair, worker=False))
    for one, two in case.pair_workers():
        found.extend(_compare_processes(one, two, worker=True))
    return list(dict.fromkeys(found))


def describe(generator: str) -> str:
    """Return what a generator is called in a sentence."""
    return GENERATORS.get(generator, (generator, ""))[0]


def _compare_processes(one: Process, two: Process, *, worker: bool) -> Iterator[RandomSource]:
    for generator in GENERATORS:
        left, right = _list_seeds(one, generator), _list_seeds(two, generator)
        for a, b in zip(left, right, strict=False):
            if a.value is None and b.value is None:
                yield RandomSource(generator, ENTROPY, a.line, a.call, worker=worker, after=a.after)
            elif a.value != b.value and a.line == b.line:
                yield RandomSource(
                    generator, CHANGING, a.line, a.call, (a.value, b.value), worker, a.after
                )
        if not left and not right:
            for draw in one.draws:
                if draw.generator == generator:
                    yield RandomSource(
                        generator, NEVER, draw.line, draw.call, worker=worker, after=draw.after
                    )


def _list_seeds(process: Process, generator: str) -> Sequence[Seed]:
    """Return the calls that seed a generator; those of torch's seed the one of the GPU too."""
    names = ("cuda", "torch") if generator == "cuda" else (generator,)
    return [seed for seed in process.seeds if seed.generator in names]


def _classify(case: Case, call: str, module: str, line: str) -> str:
    """Return the cause's code for a draw by what it is used for."""
    what = case.first.what
    if what == INITIAL_WEIGHTS:
        return "unseeded-weights"
    if what == "indices" or _SHUFFLE.search(call):
        return "unseeded-shuffle"
    if _DROPOUT.search(f"{call} {module}"):
        return "dropout-draws"
    if what in ("batch", "input"):
        return "augmentation-draws"
    return "unseeded-draws"


def _describe_source(source: RandomSource) -> str:
    where = " in a worker of the DataLoader" if source.worker else ""
    place = f"{source.call} at {source.line}" if source.line else source.call
    name = describe(source.generator)
    if source.why == CHANGING:
        left, right = source.values
        return f"{place} seeds {name}{where} with {left} in one run and {right} in the other"
    if source.why == ENTROPY:
        return f"{place} seeds {name}{where} from the operating system's entropy"
    return f"{place} draws from {name}{where}, which no call seeds"


def _describe_words(family: str) -> dict[str, str]:
    name, call = GENERATORS.get(family, (family, "its seed function"))
    return {"generator": name, "call": call}


def _name_experiment(family: str, *, changing: bool) -> str:
    base = family.partition("-")[0].replace("cuda", "torch")
    return f"seed-{base}" + ("-values" if changing else "")
