"""The simulated ECG dataset: 12 leads, 10 s at 100 Hz, without a download and without a seed.

Record i is a pure function of i. It is computed with +, -, *, / and square roots in float64, one
element at a time, and rounded to whole microvolts. No math library and no order of summation can
change it, so every machine makes the same record.
"""

import numpy as np
from numpy.typing import NDArray

from seedless.core.checks import check_integer, check_memory
from seedless.core.dataset import TEN_FOLDS, Dataset
from seedless.core.errors import DataError
from seedless.core.threads import run_in_blocks
from seedless.data.leads import get_lead_set
from seedless.data.simulators.exact_math import Int64
from seedless.data.simulators.heart import SAMPLES, project_heart
from seedless.data.simulators.noise import simulate_noise
from seedless.data.simulators.population import CLASSES, PRESETS, describe_records, preset_records
from seedless.data.simulators.rhythm import simulate_beats

FS = 100.0
VERSION = 1  # raised whenever any record changes
_BLOCK = 64  # records at a time, so that their arrays fit into the processor's cache
_LAST = 1 << 40  # record numbers beyond this are surely a mistake


def simulate_ecg(
    count: int | None = None,
    *,
    leads: str = "12",
    start: int = 0,
    preset: str | None = None,
) -> Dataset:
    """Return simulated ECGs with PTB-XL's rhythm classes: float32 (n, leads, 1000) in millivolts.

    Args:
        count: number of records, from ``start`` on; by default the 21,799 of the population, in
            which label sets are exactly as frequent as in PTB-XL.
        leads: "12" or "6" (the limb leads).
        start: number of the first record.
        preset: "tiny" (240 records), "small" (1,500) or "full" (21,799) instead of a range: its
            records are chosen so that every class is in every fold.

    Example: ``simulate_ecg(preset="tiny").X.shape == (240, 12, 1000)``.
    """
    return simulate_records(_choose_records(count, start, preset), leads=leads)


def simulate_records(records: Int64, *, leads: str = "12") -> Dataset:
    """Return the records with these numbers, in this order; each number may occur once."""
    names = get_lead_set(leads)
    if records.ndim != 1 or records.dtype.kind != "i" or (records < 0).any():
        raise DataError("expected record numbers as a row of integers >= 0")
    people = describe_records(records)
    samples = np.empty((len(records), len(names), SAMPLES), np.float32)

    def simulate(block: slice) -> None:
        samples[block] = simulate_microvolts(records[block])[:, : len(names)] / 1000.0

    run_in_blocks(simulate, len(records), _BLOCK)
    return Dataset(
        name="simulated",
        X=samples,
        Y=people.labels,
        classes=CLASSES,
        folds=people.folds,
        ids=np.array([f"sim-{record + 1:06d}" for record in records.tolist()]),
        protocol=TEN_FOLDS,
        patients=np.array([f"person-{patient + 1:06d}" for patient in people.patients.tolist()]),
        sex=np.where(people.female, "F", "M"),
        age=people.age.astype(np.float32),
        fs=FS,
        leads=names,
        provenance={"source": "seedless.data.simulated", "version": VERSION, "units": "mV"},
    )


def simulate_microvolts(records: Int64) -> NDArray[np.int64]:
    """Return the records of these numbers in whole microvolts: (n, 12, 1000) int64.

    I and II are rounded to even microvolts. So III = II - I, aVR = -(I + II)/2, aVL = I - II/2 and
    aVF = II - I/2 are whole, and Einthoven's and Goldberger's laws hold exactly.
    """
    # [Step 1] Who: labels, age, sex. When: the beats. How: the heart's signal and the noise.
    people = describe_records(records)
    rhythm = simulate_beats(records, people)
    measured = project_heart(records, people, rhythm) + simulate_noise(records, people, rhythm)
    # [Step 2] Round the independent leads, then compute the others from integers.
    i, ii = (2 * np.rint(measured[:, lead] / 2000.0).astype(np.int64) for lead in (0, 1))
    chest = np.rint(measured[:, 2:] / 1000.0).astype(np.int64)
    limb = np.stack([i, ii, ii - i, -(i + ii) // 2, i - ii // 2, ii - i // 2], axis=1)
    return np.concatenate([limb, chest], axis=1)


def _choose_records(count: int | None, start: int, preset: str | None) -> Int64:
    """Return the record numbers of a range or a preset."""
    if preset is not None:
        if count is not None or start != 0:
            raise DataError(
                f"preset {preset!r} has records of its own: leave out count and start, or preset"
            )
        return preset_records(preset)
    count = PRESETS["full"] if count is None else count
    count = check_integer("count", count, 1, error=DataError)
    start = check_integer("start", start, 0, error=DataError)
    if start + count > _LAST:
        raise DataError(f"expected record numbers below 2^40, got {start + count - 1}")
    needed = count * 12 * SAMPLES * 4
    check_memory(f"{count:,} simulated ECGs", needed, error=DataError)
    return np.arange(start, start + count, dtype=np.int64)
