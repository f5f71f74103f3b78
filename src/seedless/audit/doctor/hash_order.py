"""The cause "hash-order": which line of the script depends on the order of a set, or on hash()."""

from pathlib import Path

from seedless.audit.doctor.case import LIKELY, Candidate, Case
from seedless.audit.doctor.set_order import find_ordered_lines


def judge_hash_order(case: Case) -> Candidate:
    """Return the cause, with the first line of the script's own sources that explains it.

    Lines in the file of the step, or of the operation that differs, are preferred.
    """
    one, two = case.first.processes
    process = one or two
    assert process is not None
    step = case.first.steps[0] or case.first.steps[1]
    near = [
        line.rpartition(":")[0]
        for line in (case.op.line if case.op else "", step.line if step else "")
        if line
    ]
    folder = Path(process.start.cwd)
    sources = {_show_path(path, folder) for path in process.sources}
    paths = sorted({*sources, *near}, key=lambda path: (path not in near, path))
    found = find_ordered_lines(paths, folder)
    if not found:
        sentence = "no line of the script's own sources was found that iterates over a set"
        return Candidate("hash-order", "", LIKELY, (sentence,), experiment="hash-seed")
    line, use = found[0]
    verb = "calls" if use.kind == "hash" else "takes the elements of a set in their order:"
    evidence = [f"{line} {verb} {use.text}"]
    if others := [place for place in dict.fromkeys(place for place, _ in found) if place != line]:
        evidence.append(f"other such lines: {', '.join(others[:3])}")
    return Candidate("hash-order", line, LIKELY, tuple(evidence), experiment="hash-seed")


def _show_path(path: str, folder: Path) -> str:
    """Return a path as lines name it: relative to the working folder where it is inside."""
    inside = Path(path).is_relative_to(folder)
    return str(Path(path).relative_to(folder)) if inside else path
