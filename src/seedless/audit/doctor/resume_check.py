"""Is a script's own checkpoint exact? Compare a resumed run with one that was not ended.

The resumed process counts its steps from 1. Its first weights tell after which step of the unbroken
run it goes on; from there on, every value must agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from seedless.audit.doctor.case import CERTAIN, LIKELY
from seedless.audit.doctor.first_step import PROCESS_COUNT, compare_steps, pair_processes
from seedless.audit.doctor.record_lines import ReadFile, Step
from seedless.audit.doctor.recorded_run import Process, RecordedRun

# Which cause a value stands for, in the order in which they are asked: the loss that is scaled
# differs as soon as the scale does, so the scale comes before it.
CAUSES_OF_VALUES = {
    "optimizer_state_before": "resume-optimizer",
    "scale": "resume-scaler",
    "rate": "resume-scheduler",
    "indices": "resume-sampler",
}
# What a data loader has read. It may read batches ahead of the step, and skip those that were
# trained before, so that these differ in a resume that is exact; they explain other values alone.
LOADER_VALUES = ("indices", "batch")
GENERATOR_VALUES = ("batch", "input", "output", "loss")
CALLS_OF_GENERATORS = {
    "torch": "torch.get_rng_state() and torch.set_rng_state(...)",
    "cuda": "torch.cuda.get_rng_state_all() and torch.cuda.set_rng_state_all(...)",
    "numpy": "np.random.get_state() and np.random.set_state(...)",
    "python": "random.getstate() and random.setstate(...)",
    "numpy-generator": "rng.bit_generator.state",
}


@dataclass(frozen=True)
class ResumeFinding:
    """How a resumed run compares with an unbroken one.

    Attributes:
        after: the step of the unbroken run after which the resumed one goes on; None if unknown.
        step: the first step, of the unbroken run, that differs; None if none does.
        what: the first value that differs, or "".
        names: every value of that step that differs.
        cause: a code of `CAUSES`; "" for an exact resume.
        confidence: "certain" or "likely".
        line: the line to change.
        evidence: sentences that say what was observed.
        words: what the remedy needs beside the line.
        steps: how many steps were compared.
        ranks: the ranks that differ at that step.
    """

    after: int | None
    step: int | None
    what: str
    names: tuple[str, ...]
    cause: str
    confidence: str
    line: str
    evidence: tuple[str, ...]
    words: Mapping[str, str]
    steps: int
    ranks: tuple[int, ...] = ()


def check_resume(
    unbroken: RecordedRun, ended: RecordedRun, resumed: RecordedRun, last: int
) -> ResumeFinding:
    """Compare a resumed run with an unbroken one, rank by rank; the first difference counts.

    Args:
        unbroken: the run that was not ended.
        ended: the run that was ended after step ``last``.
        resumed: the run that went on from it; it made at least one step.
        last: the number of that step.
    """
    checkpoint, line = _find_checkpoint(ended, resumed)
    found = []
    for whole, part in pair_processes(unbroken, resumed):
        if whole is None or part is None:
            found.append(_explain_missing_process(whole or part, is_resumed=whole is None))
            continue
        finding = _check_process(whole, part, last, checkpoint, line)
        found.append(replace(finding, ranks=(whole.start.rank,)))
    differing = [finding for finding in found if finding.cause]
    if not differing:
        return found[0]
    first = min(differing, key=lambda finding: finding.step or 0)
    ranks = [rank for one in differing if one.step == first.step for rank in one.ranks]
    return replace(first, ranks=tuple(dict.fromkeys(ranks)))


def _check_process(
    whole: Process, part: Process, last: int, checkpoint: ReadFile | None, line: str
) -> ResumeFinding:
    """Compare a resumed process with the unbroken one of the same rank."""
    after = _find_start(whole, part, last)
    if not after:
        return _explain_not_loaded(after, part, checkpoint, last)
    evidence = [f"the resumed run begins with the weights after step {after} of the unbroken one"]
    pairs = list(zip(whole.steps[after:], part.steps, strict=False))
    for left, right in pairs:
        names = compare_steps(left, right)
        if all(name in LOADER_VALUES for name in names):
            continue
        if "indices" in names and _is_same_order(whole, part, after):
            names = tuple(name for name in names if name not in LOADER_VALUES)
        cause, words, found = _explain_step(left, right, names, whole)
        others = _list_other_causes(names, cause)
        evidence.append(f"at step {left.step} these values differ: {', '.join(names)}")
        evidence += [*found, *others]
        if checkpoint:
            evidence.append(f"the checkpoint {checkpoint.path} is read at {checkpoint.line}")
        confidence = CERTAIN if cause in CAUSES_OF_VALUES.values() else LIKELY
        return ResumeFinding(
            after,
            left.step,
            names[0],
            names,
            cause,
            confidence,
            line or right.line,
            tuple(evidence),
            words,
            len(pairs),
        )
    return ResumeFinding(after, None, "", (), "", "", "", tuple(evidence), {}, len(pairs))


def _explain_missing_process(process: Process | None, *, is_resumed: bool) -> ResumeFinding:
    """Return what is known where only one of the runs has a process that makes steps."""
    assert process is not None  # one of the two runs has it
    run = "resumed" if is_resumed else "unbroken"
    sentence = f"only the {run} run has a process {process.start.rank} that makes steps"
    line = process.steps[0].line
    ranks = (process.start.rank,)
    names = (PROCESS_COUNT,)
    return ResumeFinding(
        None, 1, PROCESS_COUNT, names, "unknown", LIKELY, line, (sentence,), {}, 0, ranks
    )


def _is_same_order(whole: Process, part: Process, after: int) -> bool:
    """Whether both took the samples of the steps after ``after`` in one order, to their ends.

    A run that makes more steps than are left began an epoch again: its last samples agree, too.
    """
    if len(part.steps) != len(whole.steps) - after:
        return False
    one, two = (
        [batch for step in process.steps for batch in step.values.get("indices", ())]
        for process in (whole, part)
    )
    count = min(len(one), len(two))
    return count > 0 and one[-count:] == two[-count:]


def _find_start(whole: Process, part: Process, last: int) -> int | None:
    """Return after which step a resumed process goes on; 0 for the start; None if unknown."""
    first = part.steps[0].values.get("weights_before")
    for step in reversed(whole.steps[:last]):
        if step.values.get("weights") == first:
            return step.step
    return 0 if whole.steps[0].values.get("weights_before") == first else None


def _explain_not_loaded(
    after: int | None, part: Process, checkpoint: ReadFile | None, last: int
) -> ResumeFinding:
    step = part.steps[0]
    if after == 0:
        evidence = [f"the resumed run begins with the initial weights, not those of step {last}"]
    else:
        evidence = [
            f"the weights that the resumed run begins with are those of no step up to {last}"
        ]
    if checkpoint is not None:
        evidence.append(f"it reads {checkpoint.path} at {checkpoint.line}")
    else:
        evidence.append("it reads no file that the run before it wrote")
    line = checkpoint.line if checkpoint is not None and checkpoint.line else step.line
    return ResumeFinding(
        after,
        1 if after == 0 else last + 1,
        "weights_before",
        ("weights_before",),
        "resume-not-loaded",
        CERTAIN,
        line,
        tuple(evidence),
        {},
        0,
    )


def _explain_step(
    left: Step, right: Step, names: Sequence[str], whole: Process
) -> tuple[str, dict[str, str], list[str]]:
    """Return cause, words of the remedy and evidence for the first step that differs."""
    moved = _find_position(right, whole, left.step, names)
    position = [] if moved is None else [f"its data are those of step {moved} of the unbroken run"]
    for name, cause in CAUSES_OF_VALUES.items():
        if name in names and not (name == "rate" and "indices" in names):
            explained = position if cause == "resume-sampler" else []
            return cause, {}, [*_show_numbers(left, right, name), *explained]
    states = [
        name
        for name, state in left.generators.items()
        if right.generators.get(name, state) != state
    ]
    if position:
        return "resume-sampler", {}, position
    if states and any(name in names for name in GENERATOR_VALUES):
        drawn = [name for name in states if _drew(whole, left, name)]
        name = (drawn or states)[0].partition(":")[0]
        found = [f"after that step, the state of these generators differs: {', '.join(states)}"]
        words = {"generator": f"the {name} generator", "call": CALLS_OF_GENERATORS.get(name, name)}
        return "resume-generator", words, found
    return "unknown", {}, []


def _drew(whole: Process, step: Step, name: str) -> bool:
    """Return whether a step moved a generator; others may differ because nobody seeds them."""
    before = [other for other in whole.steps if other.step < step.step]
    return not before or before[-1].generators.get(name) != step.generators.get(name)


def _find_position(step: Step, whole: Process, number: int, names: Sequence[str]) -> int | None:
    """Return another step of the unbroken run that had the same data, if there is one."""
    for name in ("indices", "batch", "input"):
        value = step.values.get(name)
        if not value or name not in names:
            continue
        for other in whole.steps:
            if other.step != number and other.values.get(name) == value:
                return other.step
    return None


def _list_other_causes(names: Sequence[str], cause: str) -> list[str]:
    others = [other for name, other in CAUSES_OF_VALUES.items() if name in names and other != cause]
    return [f"further causes: {', '.join(others)}"] if others else []


def _show_numbers(left: Step, right: Step, name: str) -> list[str]:
    a, b = left.shown.get(name), right.shown.get(name)
    if a is None or b is None:
        return []
    return [f"{name} at step {left.step}: {a} in the unbroken run, {b} in the resumed one"]


def _find_checkpoint(ended: RecordedRun, resumed: RecordedRun) -> tuple[ReadFile | None, str]:
    """Return the file that the resumed run alone read, and the line that wrote or reads it."""
    before = {file.path for process in ended.processes for file in process.files.read}
    written = {
        file.path: file.line for process in ended.processes for file in process.files.written
    }
    new = [
        file
        for process in resumed.training
        for file in process.files.read
        if file.path not in before
    ]
    new.sort(key=lambda file: (file.path not in written, not file.line))
    if not new:
        return None, ""
    return new[0], written.get(new[0].path) or new[0].line
