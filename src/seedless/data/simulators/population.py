"""The simulated population: labels, fold, patient, sex and age of every record, but no signal.

It is like PTB-XL: 21,799 records with exactly its label sets and numbers of records per patient.
Records beyond the first 21,799 repeat these labels with other patients, so there is no last record.
A preset is a list of record numbers; record i is the same in every preset.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from seedless.core.registry import choose
from seedless.data.class_names import RHYTHMS
from seedless.data.simulators.exact_math import Float64, Int64, draw_rows
from seedless.numerics.counter_random import draw_uniform

CLASSES = RHYTHMS  # from frequent to rare, which `_make_population` relies on
FOLDS = 10
PRESETS = {"tiny": 240, "small": 1500, "full": 21799}
_MIN_RECORDS = {"tiny": 10, "small": 40}  # of each class, where it is the record's rarest

# Rhythm label sets of PTB-XL 1.0.3 and how many records carry each ("": none).
LABEL_SETS = {
    "SR": 16687,
    "AFIB": 1484,
    "STACH": 805,
    "": 769,
    "SARRH": 765,
    "SBRAD": 629,
    "PACE": 285,
    "SVARR": 150,
    "SR BIGU": 37,
    "AFLT": 36,
    "BIGU": 22,
    "AFIB AFLT": 17,
    "STACH BIGU": 11,
    "SR TRIGU": 11,
    "SVTAC": 10,
    "PSVT": 10,
    "SVTAC PSVT": 8,
    "AFIB BIGU": 7,
    "AFLT SVTAC": 6,
    "SR AFLT": 5,
    "STACH AFLT": 5,
    "AFIB PACE": 4,
    "STACH TRIGU": 4,
    "SVARR AFLT": 4,
    "TRIGU": 4,
    "SARRH SBRAD": 3,
    "SBRAD BIGU": 3,
    "SR PACE": 3,
    "SBRAD PACE": 2,
    "SR SARRH": 2,
    "SVARR PSVT": 2,
    "SARRH BIGU": 2,
    "SVARR TRIGU": 1,
    "AFIB SVTAC": 1,
    "SR SVTAC": 1,
    "SR SVTAC PSVT": 1,
    "STACH PSVT": 1,
    "SR PSVT": 1,
    "AFIB PSVT": 1,
}
PATIENT_SIZES = {10: 1, 9: 3, 8: 4, 7: 5, 6: 16, 5: 43, 4: 99, 3: 350, 2: 1590, 1: 16758}


@dataclass(frozen=True)
class People:
    """The people behind n records: labels are (n, 12), the other arrays (n,)."""

    labels: NDArray[np.uint8]
    folds: Int64
    patients: Int64
    female: NDArray[np.bool_]
    age: Float64


@dataclass(frozen=True)
class _Population:
    """The first 21,799 records: labels, fold, patient, rarest class, and rank within that class."""

    labels: NDArray[np.uint8]
    folds: Int64
    patients: Int64
    stratum: Int64
    rank: Int64


def describe_records(records: Int64) -> People:
    """Return labels, fold, patient, sex and age of these records; no signal is computed."""
    population = _make_population()
    round_number, place = records // len(population.folds), records % len(population.folds)
    patients = population.patients[place] + round_number * (int(population.patients.max()) + 1)
    u = draw_rows(patients, "simulated person", 4)
    age = np.rint(18 + 77 * (0.6 * np.maximum(u[:, 0], u[:, 1]) + 0.4 * u[:, 2]))
    return People(population.labels[place], population.folds[place], patients, u[:, 3] < 0.48, age)


def preset_records(preset: str) -> Int64:
    """Return the record numbers of a preset, ascending; every class is in every fold of it.

    "full" is the whole population. In the other presets the number of records of a class is
    proportional to the square root of its frequency, but at least one per fold ("tiny") or four
    ("small"); if the population has too few, records after the first 21,799 are added.
    """
    size = choose("preset", preset, PRESETS)
    population = _make_population()
    if preset not in _MIN_RECORDS:
        return np.arange(size)
    there = np.bincount(population.stratum)
    root = np.sqrt(there.astype(np.float64))

    def quotas(step: int) -> Int64:
        return np.maximum(_MIN_RECORDS[preset], np.floor(root * (step / 1000)).astype(np.int64))

    low, high = 0, 1_000_000  # the largest step whose quotas do not exceed the size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if quotas(middle).sum() <= size else (low, middle)
    quota = quotas(low)
    quota[0] += size - quota.sum()  # rounding leaves a few: sinus rhythm has enough
    rounds = np.arange(int((-(-quota // there)).max()))[:, None]
    rank = population.rank + rounds * there[population.stratum]
    return np.flatnonzero(rank.ravel() < np.tile(quota[population.stratum], len(rounds)))


@cache
def _make_population() -> _Population:
    """Return the population: label sets assigned to folds in turn, then to patients, then shuffled.

    A record's stratum is its rarest class. The records of one stratum after another are assigned to
    folds 1, 2, ..., 10, 1, ..., so the folds have the same number of a class within one or two.
    """
    # [Step 1] One record for each count of a label set, with its stratum.
    sets = [[CLASSES.index(name) for name in names.split()] for names in LABEL_SETS]
    strata = [max(members, default=len(CLASSES)) for members in sets]
    which = np.repeat(np.arange(len(sets)), list(LABEL_SETS.values()))
    size = len(which)
    stratum = np.array(strata)[which]
    # [Step 2] Within a stratum in random order, assign the records to the folds in turn.
    assigned = np.lexsort((draw_uniform(0, "simulated deal", size), stratum))
    folds, rank = np.empty(size, np.int64), np.empty(size, np.int64)
    folds[assigned] = 1 + np.arange(size) % FOLDS
    rank[assigned] = np.arange(size) - np.searchsorted(stratum[assigned], stratum[assigned])
    # [Step 3] Shuffle the records, and group those of a fold into patients.
    multi_hot = np.zeros((len(sets), len(CLASSES)), np.uint8)
    for row, members in enumerate(sets):
        multi_hot[row, members] = 1
    place = np.argsort(draw_uniform(0, "simulated place", size), kind="stable")
    folds = folds[place]
    return _Population(
        multi_hot[which[place]], folds, _assign_patients(folds), stratum[place], rank[place]
    )


def _assign_patients(folds: Int64) -> Int64:
    """Return the patient of each record, numbered by first appearance; each is in one fold only."""
    shuffled = np.argsort(draw_uniform(0, "simulated patients", len(folds)), kind="stable")
    several = [size for size, count in PATIENT_SIZES.items() for _ in range(count) if size > 1]
    patients = np.empty(len(folds), np.int64)
    first = 0
    for fold in range(1, FOLDS + 1):
        members = shuffled[folds[shuffled] == fold]
        sizes = several[fold - 1 :: FOLDS]
        sizes = sizes + [1] * (len(members) - sum(sizes))
        patients[members] = first + np.repeat(np.arange(len(sizes)), sizes)
        first += len(sizes)
    _, appears, patients = np.unique(patients, return_index=True, return_inverse=True)
    rank = np.empty(first, np.int64)
    rank[np.argsort(appears)] = np.arange(first)
    return rank[patients]
