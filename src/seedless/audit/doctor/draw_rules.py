"""Causes that are draws: which generator, who drew, at which line, and why its state differs."""

import re
from collections.abc import Iterator

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.first_step import INITIAL_WEIGHTS, compare_generators
from seedless.audit.doctor.random_sources import (
    CHANGING,
    ENTROPY,
    GENERATORS,
    NEVER,
    describe,
    describe_source,
    list_seeds,
    list_sources,
)
from seedless.audit.doctor.step_ops import StepOp

_SHUFFLE = re.compile(r"randperm|shuffle|permutation|sample\b|choices?\b")
_DROPOUT = re.compile(r"dropout|droppath|drop_path|stochasticdepth", re.IGNORECASE)

AFTER_THE_LOSS = ("gradients", "rate", "scale", "weights", "optimizer_state", "buffers")


def judge_draw(case: Case) -> Candidate | None:
    """Return the cause if the first operation that differs is a draw."""
    op = choose_draw(case)
    if op is None or case.pair is None:
        return None
    family = "cuda" if op.draws.startswith("cuda") else op.draws
    evidence = [
        f"{op.op} at {op.line or 'an unknown line'} draws from {describe(family)}, and its inputs "
        "agree while its values differ"
    ]
    cause, line = _classify(case, op.op, op.module), op.line
    if cause == "unseeded-weights" and op.maker:
        line = op.maker  # a seed belongs before the line that makes the model
    if (worker_line := _find_worker_line(case, op)) and cause == "augmentation-draws":
        cause, line = "worker-draws", worker_line
        evidence.append("the workers of the DataLoader are seeded with this draw")
    sources = [
        source
        for source in list_sources(case)
        if source.generator == family and source.why != NEVER and not source.worker
    ]
    if sources:
        chosen = sources[0]  # later seeds may be drawn from it, as samplers draw theirs
        evidence.append(describe_source(chosen))
        if chosen.why == CHANGING:
            cause = "time-seed"
        line = chosen.line or line
    elif seeds := list_seeds(case.pair[0], family):
        places = ", ".join(dict.fromkeys(f"{seed.call} at {seed.line}" for seed in seeds[:3]))
        evidence.append(
            f"{describe(family)} is seeded with the same value in both runs ({places}), "
            "so this draw comes before that call, or another number of draws came before it"
        )
    else:
        evidence.append(f"no call seeds {describe(family)} in this process")
    experiment = _name_experiment(family, changing=cause == "time-seed")
    words = {**_describe_words(family), "op": op.op, "module": op.module}
    first = case.op
    if first is not None and first.draws == op.draws and first.line not in ("", op.line, line):
        words["earlier"] = f": best before {first.line}, the first line that draws from it"
    return Candidate(cause, line, LIKELY, tuple(evidence), words, experiment)


def choose_draw(case: Case) -> StepOp | None:
    """Return the draw that explains the first value that differs; None if a draw is not first.

    Weights are filled in place, as by torch.nn.init, or drawn by torch; an order of the data is
    drawn by a call that permutes; an output is changed by draws inside the model. Where no draw is
    of that kind, the first one is taken.
    """
    if case.op is None or not case.op.draws:
        return None
    known = case.draws or ((case.op,) if case.op.kind in ("op", "draw") else ())
    draws = [op for op in known if not _has_other_arguments(case, op)]
    if not draws:
        return None

    def rank(op: StepOp) -> int:
        is_torch = op.draws.startswith(("torch", "cuda"))
        is_order = bool(_SHUFFLE.search(op.op))
        if case.first.what == INITIAL_WEIGHTS:
            is_filled = op.op.split(".")[1:2] and op.op.split(".")[1].endswith("_")
            return 0 if is_torch and is_filled else 1 if is_torch and not is_order else 2 + is_order
        if case.first.what == "indices":
            return int(not (is_order or op.op.startswith("aten.random_")))
        if case.first.what in ("output", "loss"):  # weights and input agree: it is drawn on the way
            return int(not (op.module or op.phase == "forward"))
        return int(is_order and "indices" not in case.first.names)

    return min(draws, key=rank)


def _has_other_arguments(case: Case, op: StepOp) -> bool:
    """Whether a draw differs because it was given other data: its generator's states agree.

    A call such as random.shuffle gives other values where what it shuffles is not the same.
    """
    one, two = case.first.steps
    if not _SHUFFLE.search(op.op) or one is None or two is None or op.draws not in one.generators:
        return False
    return one.generators[op.draws] == two.generators.get(op.draws)


def _find_worker_line(case: Case, op: StepOp) -> str:
    """Return the line that draws in a worker, if a draw is the one that seeds the workers."""
    if not op.op.startswith("aten.random_"):
        return ""
    lines = [draw.line for one, _ in case.pair_workers() for draw in one.draws if draw.line]
    return lines[0] if lines else ""


def judge_states(case: Case) -> Iterator[Candidate]:
    """Yield causes where a global generator is not in the same state, and nobody seeded it alike.

    For steps whose operations are not known: who drew is not known either.
    """
    if case.pair is None or case.op is not None or case.first.what in AFTER_THE_LOSS:
        return
    first_steps = compare_generators(*case.pair)
    families = ("torch", "cuda", "numpy", "python")
    if case.first.what in ("batch", "input"):
        families = ("numpy", "python", "torch", "cuda")
    for family in families:
        differing = [step for name, step in first_steps.items() if name.partition(":")[0] == family]
        if not differing or min(differing) > case.first.step or list_seeds(case.pair[0], family):
            continue
        evidence = (
            f"the state of {describe(family)} differs after step {min(differing)}",
            f"no call seeds {describe(family)} in this process",
        )
        cause = _classify(case, "", "")
        experiment = _name_experiment(family, changing=False)
        drawn = [draw.line for draw in case.pair[0].draws if draw.generator == family and draw.line]
        line = drawn[0] if drawn else ""
        yield Candidate(cause, line, LIKELY, evidence, _describe_words(family), experiment)


def judge_random_sources(case: Case) -> Iterator[Candidate]:
    """Yield causes where no operation shows the draw: in workers, or in an object's own generator.

    The most plausible come first: draws in workers if a batch differs, then seeds that change, then
    seeds from entropy, then draws from a generator that nobody seeded.
    """
    is_data = case.first.what in ("indices", "batch", "input", "output", "loss", "number of steps")
    before = [source for source in list_sources(case) if source.after < case.first.step]
    order = {CHANGING: 0, ENTROPY: 1, NEVER: 2}
    indirect = "SeedSequence"  # what numpy calls itself, also for objects that nobody draws from
    before.sort(
        key=lambda one: (
            one.generator == "python-generator",
            one.worker != is_data,
            3 if indirect in one.call else order[one.why],
            -one.after,
        )
    )
    for source in before:
        cause = "worker-draws" if source.worker else _classify(case, source.call, "")
        if source.why == CHANGING and source.line:
            cause = "time-seed"
        family = source.generator
        yield Candidate(
            cause,
            source.line,
            POSSIBLE,
            (describe_source(source),),
            _describe_words(family),
            _name_experiment(family, changing=source.why == CHANGING),
        )


def _classify(case: Case, call: str, module: str) -> str:
    """Return the cause's code for a draw by what it is used for."""
    what = case.first.what
    if what == INITIAL_WEIGHTS:
        return "unseeded-weights"
    if what == "indices" or _SHUFFLE.search(call):
        return "unseeded-shuffle"
    # A mask that a module draws in its forward pass is dropout, whatever the module is called.
    if _DROPOUT.search(f"{call} {module}") or (module and "bernoulli" in call):
        return "dropout-draws"
    if what == "batch":
        return "augmentation-draws"
    return "unseeded-draws"


def _describe_words(family: str) -> dict[str, str]:
    name, call = GENERATORS.get(family, (family, "its seed function"))
    return {"generator": name, "call": call}


def _name_experiment(family: str, *, changing: bool) -> str:
    base = family.partition("-")[0].replace("cuda", "torch")
    # The seed of a torch.Generator can only be replaced where the generator is used.
    return f"seed-{base}" + ("-values" if changing or family == "torch-generator" else "")
