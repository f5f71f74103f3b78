"""Noise for stress tests where no recorded noise is at hand: a function of key and kind alone.

The three kinds of the MIT-BIH Noise Stress Test Database, made from counters and IEEE arithmetic,
so that every machine has the same bits. It sits on leads I, II and V1 to V6; the other limb leads
follow by Einthoven and Goldberger, as they do for the signal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seedless.core.registry import choose
from seedless.data.leads import TWELVE, derive_limb_leads, select_leads
from seedless.data.simulators.exact_math import bump, cosine, draw_rows, to_phase
from seedless.numerics.normal_quantile import normal_quantile

Float64 = NDArray[np.float64]
LEADS = 8  # I, II, V1..V6; the others follow


def simulate_stress(kind: str, key: int, names: tuple[str, ...], length: int, fs: float) -> Float64:
    """Return noise of a kind for a record's key: (leads, time) float64 in an arbitrary unit."""
    make = choose("noise", kind, KINDS)
    independent = make(np.array([key], dtype=np.int64), length, fs).astype(np.float32)
    limb = derive_limb_leads(independent[0], independent[1])
    twelve = np.concatenate([limb, independent[2:]])
    return select_leads(twelve, TWELVE, names, "noise").astype(np.float64)


def _wander(key: NDArray[np.int64], length: int, fs: float) -> Float64:
    """Baseline wander: four slow waves of 0.05 to 0.5 Hz, each with its strength on each lead."""
    waves = 4
    u = draw_rows(key, "stress wander", 2 * waves + waves * LEADS)[0]
    time = np.arange(length) / fs
    rates = 0.05 + 0.45 * u[:waves]
    phases = to_phase(u[waves : 2 * waves, None] + rates[:, None] * time[None, :])
    strength = normal_quantile(u[2 * waves :]).reshape(LEADS, waves)
    return _mix(strength, cosine(phases))


def _muscle(key: NDArray[np.int64], length: int, fs: float) -> Float64:
    """Muscle artifact: white noise with its high notes stronger, swelling once in the record."""
    white = _white(key, "stress muscle", length + 1)
    u = draw_rows(key, "stress tension", 2)[0]
    time = np.arange(length) / fs
    seconds = length / fs
    swell = bump(time - seconds * u[0], (0.15 + 0.35 * u[1:2]) * seconds)
    rough: Float64 = white[:, 1:] - 0.5 * white[:, :-1]
    return rough * (0.5 + swell)


def _motion(key: NDArray[np.int64], length: int, fs: float) -> Float64:
    """Electrode motion: six jolts of 0.1 to 0.8 s on all leads, over noise slower than muscles'."""
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
    """strength @ waves, wave after wave: a matrix product's order of sums is its library's own."""
    total = np.zeros((len(strength), waves.shape[1]))
    for column, wave in zip(strength.T, waves, strict=True):
        total = total + column[:, None] * wave[None, :]
    return total
