"""Noise of a recording: breathing, electrode drift, muscles, and sudden movement.

It is simulated at the nine electrodes, and leads are differences of electrodes, so Einthoven's law
holds for the noisy signal too.
"""

import numpy as np

from seedless.data.simulators.exact_math import (
    Float64,
    Int64,
    bump,
    cosine,
    draw_noise,
    draw_rows,
    to_phase,
)
from seedless.data.simulators.heart import SAMPLES, STEP
from seedless.data.simulators.population import People
from seedless.data.simulators.rhythm import Rhythm

ELECTRODES = ("RA", "LA", "LL", "V1", "V2", "V3", "V4", "V5", "V6")


def simulate_noise(records: Int64, people: People, rhythm: Rhythm) -> Float64:
    """Return the noise on leads I, II, V1..V6 in nV: (n, 8, 1000) float64."""
    # [Step 1] How noisy each record is.
    n, electrodes = len(records), len(ELECTRODES)
    u = draw_rows(records, "simulated noise", 60)
    bare = ~people.labels.any(axis=1)  # records without a label are often the noisy ones
    bad = (u[:, 0] < 0.05) | (bare & (u[:, 0] < 0.6))
    level = np.where(bad, 2.0 + 3.0 * u[:, 1], 0.2 + 1.1 * u[:, 1] * u[:, 2])
    # [Step 2] Waveforms that all electrodes share: drift, muscle tension, one sudden movement.
    time = np.arange(SAMPLES) * STEP
    breath = cosine(rhythm.breath_start[:, None] + rhythm.breath[:, None] * time)
    drifts = [breath] + [
        cosine(
            to_phase(u[:, 3 + k : 4 + k]) + to_phase((low + low * u[:, 5 + k : 6 + k]) / 1e3) * time
        )
        for k, low in enumerate((0.06, 0.45))
    ]
    white = draw_noise(records, "simulated muscle", electrodes * (SAMPLES + 1))
    white = white.reshape(n, electrodes, SAMPLES + 1)
    muscle = (white[:, :, 1:] - 0.5 * white[:, :, :-1]) / 120  # deviation 1, mostly high
    tense = 0.6 + 0.8 * bump(time - 10_000 * u[:, 7:8], 1_500 + 3_000 * u[:, 8:9])
    jolt = bump(time - 10_000 * u[:, 9:10], 150 + 500 * u[:, 10:11])
    shaken = np.floor(u[:, 11] * electrodes).astype(np.int64)
    height = np.where((u[:, 12] < 0.12) | bad, 3e5 * (2 * u[:, 13] - 1) * (1 + level), 0.0)
    # [Step 3] Each electrode has its own strength of each waveform.
    noise = np.empty((n, electrodes, SAMPLES))
    for e in range(electrodes):
        own = u[:, 15 + 5 * e : 20 + 5 * e]
        loud = 12_000 * level * (0.5 + own[:, 0])
        signal = muscle[:, e] * loud[:, None] * tense
        for k, height_of in enumerate((35_000, 40_000, 15_000)):
            strength = height_of * (0.3 + level) * (2 * own[:, 1 + k] - 1)
            signal = signal + drifts[k] * strength[:, None]
        noise[:, e] = signal + jolt * np.where(shaken == e, height, 0.0)[:, None]
    # [Step 4] Leads are differences of electrodes.
    ra, la, ll = noise[:, 0], noise[:, 1], noise[:, 2]
    terminal = (ra + la + ll) / 3.0  # Wilson's central terminal
    return np.stack([la - ra, ll - ra, *(noise[:, e] - terminal for e in range(3, 9))], axis=1)
