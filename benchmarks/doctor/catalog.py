"""Every pair of the bench by its name."""

from __future__ import annotations

from benchmarks.doctor import clean, draws, gpu, numerics, resumes, seeds, surroundings
from benchmarks.doctor.pair import Pair

FAMILIES = (seeds, draws, surroundings, numerics, resumes, clean, gpu)


def list_pairs(device: str = "cpu") -> list[Pair]:
    """Return the pairs of a device, faults first, names unique."""
    pairs = [pair for family in FAMILIES for pair in family.PAIRS if pair.device == device]
    names = [pair.name for pair in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"two pairs have the same name: {sorted(names)}")
    return pairs
