"""The cause "hash-order": which line of the script depends on the order of a set, or on hash()."""

from collections.abc import Iterator

from seedless.audit.doctor.case import LIKELY, Candidate, Case
from seedless.audit.doctor.first_step import INITIAL_WEIGHTS
from seedless.audit.doctor.script_sources import list_source_paths
from seedless.audit.doctor.set_order import find_ordered_lines

EXPERIMENT = "hash-seed"


def judge_hash_order(case: Case) -> Candidate:
    """Return the cause, with the first line of the script's own sources that explains it.

    Lines in the file of the step, or of the operation that differs, are preferred.
    """
    found = find_ordered_lines(*list_source_paths(case))
    if not found:
        sentence = "no line of the script's own sources was found that iterates over a set"
        return Candidate("hash-order", "", LIKELY, (sentence,), experiment=EXPERIMENT)
    line, use = found[0]
    verb = "calls" if use.kind == "hash" else "takes the elements of a set in their order:"
    evidence = [f"{line} {verb} {use.text}"]
    if others := [place for place in dict.fromkeys(place for place, _ in found) if place != line]:
        evidence.append(f"other such lines: {', '.join(others[:3])}")
    return Candidate("hash-order", line, LIKELY, tuple(evidence), experiment=EXPERIMENT)


def judge_parameter_order(case: Case) -> Iterator[Candidate]:
    """Yield the cause where the optimizer has the same weights in both runs, in another order.

    A set of tensors has the order of their addresses: then PYTHONHASHSEED does not change it, and
    the cause stays likely. The line is the one that makes the set, for tensors cannot be sorted.
    """
    if case.first.what != INITIAL_WEIGHTS or not case.reordered:
        return
    sentence = "the optimizer has the same weights in both runs, in another order"
    uses = [
        (place, use)
        for place, use in find_ordered_lines(*list_source_paths(case))
        if use.kind == "set"
    ]
    line, found = "", [sentence]
    if uses:
        place, use = uses[0]
        line = f"{place.rpartition(':')[0]}:{use.made}"
        found.append(f"{place} takes the elements of a set in their order: {use.text}")
    yield Candidate("hash-order", line, LIKELY, tuple(found), experiment=EXPERIMENT)
