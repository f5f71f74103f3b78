"""Every pair of the bench by its name."""

from __future__ import annotations

from itertools import zip_longest

from benchmarks.doctor import blind, clean, draws, gpu, numerics, resumes, seeds, surroundings
from benchmarks.doctor.pair import Pair

FAMILIES = (seeds, draws, surroundings, numerics, resumes, clean, blind, gpu)


def list_pairs(device: str = "cpu") -> list[Pair]:
    """Return the pairs of a device in turns from each family; their names are unique.

    A run of the bench that is ended early has then met every kind of cause.
    """
    turns = zip_longest(*(family.PAIRS for family in FAMILIES))
    pairs = [pair for turn in turns for pair in turn if pair and pair.device == device]
    names = [pair.name for pair in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"two pairs have the same name: {sorted(names)}")
    return pairs
