"""The body of each patient: the vectors of the heart's waves, their timing, and the lead positions.

Vectors are in nanovolts: x to the left, y down, z to the back. Age and sex have a small effect:
women have smaller waves; with age, waves shrink and the heart's axis turns left.
"""

from dataclasses import dataclass

import numpy as np

from seedless.data.simulators.exact_math import (
    TURN,
    Float64,
    Int64,
    cosine,
    draw_rows,
    near_normal,
    to_phase,
)
from seedless.data.simulators.population import People

WAVES = ("P", "Q", "R", "S", "T", "spike")
NARROW, BROAD, DRIVEN = range(3)  # shapes of a beat: normal, ventricular, paced
# Leads I, II, V1..V6 from x, y, z (Dower et al., J Electrocardiol 1980).
_LEADS = np.array(
    [
        (0.632, -0.235, 0.059),
        (0.235, 1.066, -0.132),
        (-0.515, 0.157, -0.917),
        (0.044, 0.164, -1.387),
        (0.882, 0.098, -1.277),
        (1.213, 0.127, -0.601),
        (1.125, 0.127, -0.086),
        (0.831, 0.076, 0.230),
    ]
)
# (x, z) in mV before the patient's axis turns x into the frontal plane.
_NARROW_WAVES = {
    "P": (0.13, -0.03),
    "Q": (-0.16, -0.24),
    "R": (1.25, 0.40),
    "S": (-0.22, 0.38),
    "T": (0.36, -0.16),
}
_BROAD_WAVES = {
    "P": (0.13, -0.03),
    "Q": (0.25, -0.15),
    "R": (1.45, 0.55),
    "S": (-0.35, 0.45),
    "T": (-0.48, -0.25),  # opposite to the QRS, as after every beat that starts in a ventricle
}


@dataclass(frozen=True)
class Body:
    """The bodies of n patients.

    Attributes:
        vectors: (n, 3 shapes, 6 waves, 3) nV.
        projection: (n, 8, 3) leads I, II, V1..V6 from x, y, z.
        width: (n,) factor of the QRS's duration.
        pr: (n,) ms from P to R peak.
        qt: (n,) factor of the time from R to T.
        skew: (n,) how much faster T falls than it rises.
    """

    vectors: Float64
    projection: Float64
    width: Float64
    pr: Float64
    qt: Float64
    skew: Float64


def simulate_bodies(people: People) -> Body:
    """Return the bodies of these people; each depends on patient number, sex and age alone."""
    n = len(people.patients)
    u = draw_rows(people.patients, "simulated body", 150)
    older = people.age - 60
    blocked = u[:, 0] < 0.09  # a conduction block: a wide QRS that is not a rhythm
    bend = 0.09 * near_normal(u[:, 75:147].reshape(n, 8, 3, 3))
    return Body(
        vectors=_vectors(people, u),
        projection=_LEADS * (1 + bend) + 0.4 * bend,
        width=np.where(blocked, 1.45 + 0.5 * u[:, 1], 0.85 + 0.35 * u[:, 1]),
        pr=125 + 60 * u[:, 2] + 0.25 * older,
        qt=0.94 + 0.12 * u[:, 3] + np.where(people.female, 0.02, 0.0),
        skew=0.55 + 0.35 * u[:, 4],
    )


def _vectors(people: People, u: Float64) -> Float64:
    """Return (n, 3 shapes, 6 waves, 3) in nV."""
    # [Step 1] The patient: size, tilt, electrical axes, and what weakens P and T.
    n, older = len(u), people.age - 60
    size = np.clip(1 + 0.22 * near_normal(u[:, 5:8]) - 0.002 * older, 0.4, 1.9)
    size = 1e6 * size * np.where(people.female, 0.93, 1.03)
    tilt = 10 * near_normal(u[:, 8:11])
    own = 46 - 0.45 * older + 20 * near_normal(u[:, 11:14])
    axes = {  # degrees in the frontal plane: P, QRS and T of each shape
        NARROW: (55 + 14 * near_normal(u[:, 14:17]), own, own + 18 * near_normal(u[:, 17:20])),
        BROAD: (own, *[100 + 30 * near_normal(u[:, 20:23])] * 2),
        DRIVEN: (55 + 14 * near_normal(u[:, 14:17]), *[-50 + 32 * near_normal(u[:, 23:26])] * 2),
    }
    faint = 0.35 + 1.1 * u[:, 26]
    flat = np.where(u[:, 27] < 0.12, -0.5 + u[:, 28], 0.65 + 0.7 * u[:, 28])
    factors = {"P": faint, "T": np.where(people.female, 0.92, 1.0) * flat}
    # [Step 2] Turn each wave of each shape by its axis, and scale it.
    vary = 1 + 0.2 * near_normal(u[:, 30:75].reshape(n, 3, 5, 3))
    vectors = np.zeros((n, 3, len(WAVES), 3))
    for shape, (p_axis, qrs_axis, t_axis) in axes.items():
        waves = _NARROW_WAVES if shape == NARROW else _BROAD_WAVES
        for wave, (name, (x, z)) in enumerate(waves.items()):
            axis = {"P": p_axis, "T": t_axis}.get(name, qrs_axis)
            scale = size * vary[:, shape, wave]
            if name == "P" or shape == NARROW:
                scale = scale * factors.get(name, np.ones(n))
            vectors[:, shape, wave] = _turn(x, z, axis, tilt, scale)
    # [Step 3] The spike of a pacemaker has one place and no variation.
    spike = 80_000 + 1_200_000 * u[:, 29] * u[:, 29]
    vectors[:, DRIVEN, WAVES.index("spike")] = _turn(1.0, 0.2, axes[DRIVEN][1], tilt, spike)
    return vectors


def _turn(x: float, z: float, frontal: Float64, tilt: Float64, scale: Float64) -> Float64:
    """Turn (x, 0, z) by degrees in the horizontal, then the frontal plane; scale it: (n, 3)."""
    around, level = to_phase(frontal / 360), to_phase(tilt / 360)
    left, back = x * cosine(level) - z * _sine(level), x * _sine(level) + z * cosine(level)
    return np.stack(
        [left * cosine(around) * scale, left * _sine(around) * scale, back * scale], axis=1
    )


def _sine(phase: Int64) -> Float64:
    return cosine(phase - TURN // 4)
