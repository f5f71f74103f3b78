"""The cause "hash-order": which line of the script depends on the order of a set, or on hash()."""

from collections.abc import Iterator

from seedless.audit.doctor.case import LIKELY, POSSIBLE, Candidate, Case
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
    # The number that hash() returns does not become stable by sorting.
    words = {"stable": "hashlib in place of hash()"} if use.kind == "hash" else {}
    return Candidate("hash-order", line, LIKELY, tuple(evidence), words, experiment=EXPERIMENT)


def judge_parameter_order(case: Case) -> Iterator[Candidate]:
    """Yield causes where the optimizer has the same weights in both runs, in another order.

    A set of names has the order of their hashes, which an experiment shows. One of tensors has the
    order of their addresses, and its elements cannot be sorted: the line is the one that makes it.
    """
    if not case.reordered:
        return
    evidence = ["the optimizer has the same weights in both runs, in another order"]
    found = [one for one in find_ordered_lines(*list_source_paths(case)) if one[1].kind == "set"]
    used = made = ""
    if found:
        used, use = found[0]
        made = f"{used.rpartition(':')[0]}:{use.made}"
        evidence.append(f"{used} takes the elements of a set in their order: {use.text}")
    yield Candidate("hash-order", used, POSSIBLE, tuple(evidence), experiment=EXPERIMENT)
    yield Candidate("address-order", made, LIKELY, tuple(evidence))
