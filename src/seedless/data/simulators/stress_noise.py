"""Simulated noise for stress tests without recorded noise: a function of key and kind alone.

The three kinds of the MIT-BIH Noise Stress Test Database, made from a counter-based generator and
IEEE arithmetic, so that every machine has the same bits. Leads I, II and V1 to V6 are simulated;
the other limb leads are computed from them (Einthoven, Goldberger), as for the signal.
"""

import numpy as np
from numpy.typing import NDArray

from seedless.core.registry import choose
from seedless.data.leads import TWELVE, derive_limb_leads, select_leads
from seedless.data.simulators.exact_math import Float64, bump, cosine, draw_rows, to_phase
from seedless.numerics.normal_quantile import normal_quantile

LEADS = 8  # I, II, V1..V6; the others are computed


def simulate_stress(kind: str, key: int, names: tuple[str, ...], length: int, fs: float) -> Float64:
    """Return noise of one kind for a record's key: (leads, time) float64, unit arbitrary."""
    make = choose("noise", kind, KINDS)
    independent = make(np.array([key], dtype=np.int64), length, fs).astype(np.float32)
    limb = derive_limb_leads(independent[0], independent[1])
    twelve = np.concatenate([limb, independent[2:]])
    return select_leads(twelve, TWELVE, names, "noise").astype(np.float64)


def _wander(key: NDArray[np.int64], length: int, fs: float) -> Float64:
    """Return baseline wander: four waves of 0.05 to 0.5 Hz, each with a strength on each lead."""
    waves = 4
    u = draw_rows(key, "stress wander", 2 * waves + waves * LEADS)[0]
    time = np.arange(length) / fs
    rates = 0.05 + 0.45 * u[:waves]
    phases = to_phase(u[waves : 2 * waves, None] + rates[:, None] * time[None, :])
    strength = normal_quantile(u[2 * waves :]).reshape(LEADS, waves)
    return _mix(strength, cosine(phases))


def _muscle(key: NDArray[np.int64], length: int, fs: float) -> Float64:
    """Return muscle artifact: noise with strong high frequencies, louder once in the record."""
    white = _white(key, "stress muscle", length + 1)
    u = draw_rows(key, "stress tension", 2)[0]
    time = np.arange(length) / fs
    seconds = length / fs
    swell = bump(time - seconds * u[0], (0.15 + 0.35 * u[1:2]) * seconds)
    rough: Float64 = white[:, 1:] - 0.5 * white[:, :-1]
    return rough * (0.5 + swell)


def _motion(key: NDArray[np.int64], length: int, fs: float) -> Float64:
    """Return electrode motion: six jolts of 0.1 to 0.8 s on all leads, and slow noise."""
    jolts = 6
    u = draw_rows(key, "stress motion", 2 * jolts + jolts * LEADS)[0]
    time = np.arange(length) / fs
    centre, width = u[:jolts, None] * length / fs, 0.1 + 0.7 * u[jolts : 2 * jolts, None]
    strength = normal_quantile(u[2 * jolts :]).reshape(LEADS, jolts)
    window = max(2, round(fs / 10))
    sums = np.cumsum(_white(key, "stress drift", length + window), axis=1)
    slow = (sums[:, window:] - sums[:, :-window]) / window
    return _mix(strength, bump(time[None, :] - centre, width)) + 0.5 * slow


KINDS = {"bw": _wander, "ma": _muscle, "em": _motion}


def _white(key: NDArray[np.int64], name: str, length: int) -> Float64:
    return normal_quantile(draw_rows(key, name, LEADS * length)).reshape(LEADS, length)


def _mix(strength: Float64, waves: Float64) -> Float64:
    """Return strength @ waves, added wave by wave: a library's order of additions is not fixed."""
    total = np.zeros((len(strength), waves.shape[1]))
    for column, wave in zip(strength.T, waves, strict=True):
        total = total + column[:, None] * wave[None, :]
    return total
