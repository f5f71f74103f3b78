"""The heart's signal: a dipole with P, QRS and T waves, projected onto the leads.

Each wave of each beat is a smooth bump times a vector of the patient. Bumps are rounded to whole
nanovolts before they are added: sums of integers are exact, so their order does not matter.
"""

import numpy as np

from seedless.data.simulators.body import BROAD, DRIVEN, NARROW, WAVES, Body, simulate_bodies
from seedless.data.simulators.exact_math import Float64, Int64, bump, cosine, draw_rows, to_phase
from seedless.data.simulators.population import People
from seedless.data.simulators.rhythm import EARLY, PACED, WIDE, Rhythm

SAMPLES = 1000
STEP = 10  # ms per sample
_MARGIN = 120  # samples on either side of the strip, for waves that begin or end outside
# Centre from the R peak and half-width, in ms, for a narrow and a wide beat.
_TIMES = {
    "Q": ((-24, 18), (-45, 50)),
    "R": ((0, 27), (0, 68)),
    "S": ((28, 23), (72, 60)),
}


def project_heart(records: Int64, people: People, rhythm: Rhythm) -> Float64:
    """Return the heart's signal on leads I, II, V1..V6, in nV: (n, 8, 1000) float64."""
    # [Step 1] Add up the dipole of all beats, and of fibrillating or fluttering atria.
    u = draw_rows(records, "simulated strip", 12)
    body = simulate_bodies(people)
    dipole = _add_beats(len(records), rhythm, body)
    _add_atria(dipole, rhythm, u)
    # [Step 2] Let breathing change its strength.
    time = np.arange(SAMPLES) * STEP
    breath = cosine(rhythm.breath_start[:, None] + rhythm.breath[:, None] * time)
    gain = (0.93 + 0.14 * u[:, 0:1]) * (1 + (0.01 + 0.07 * u[:, 1:2]) * breath)
    x, y, z = (component * gain for component in dipole)
    # [Step 3] Project it onto the leads, in a fixed order of additions.
    leads = np.empty((len(records), 8, SAMPLES))
    for lead in range(8):
        of_x, of_y, of_z = (body.projection[:, lead, axis, None] for axis in range(3))
        leads[:, lead] = x * of_x + y * of_y + z * of_z
    return leads


def _add_beats(n: int, rhythm: Rhythm, body: Body) -> list[Float64]:
    """Return the dipole of all beats: x, y and z, each (n, 1000), in whole nV."""
    kind = rhythm.kind
    shape = np.where(kind == WIDE, BROAD, np.where(kind == PACED, DRIVEN, NARROW))
    padded = SAMPLES + 2 * _MARGIN
    sums = [np.zeros(n * padded) for _ in range(3)]
    for wave, name in enumerate(WAVES):
        centre, left, right, scale = _timing(name, rhythm, body, shape)
        beats = np.flatnonzero(scale)
        if len(beats) == 0:
            continue
        centre, left, right = centre[beats], left[beats], right[beats]
        first = np.floor((centre - left) / STEP).astype(np.int64)
        length = int(np.ceil((left.max() + right.max()) / STEP)) + 2
        sample = first[:, None] + np.arange(length)
        distance = sample * float(STEP) - centre[:, None]
        height = bump(distance, np.where(distance < 0, left[:, None], right[:, None]))
        row = rhythm.row[beats]
        place = (row[:, None] * padded + np.clip(sample + _MARGIN, 0, padded - 1)).ravel()
        vector = body.vectors[row, shape[beats], wave] * scale[beats, None]
        for axis in range(3):
            values = np.rint(height * vector[:, axis, None]).ravel()
            sums[axis] += np.bincount(place, values, n * padded)
    strip = slice(_MARGIN, _MARGIN + SAMPLES)
    return [total.reshape(n, padded)[:, strip] for total in sums]


def _timing(
    name: str, rhythm: Rhythm, body: Body, shape: Int64
) -> tuple[Float64, Float64, Float64, Float64]:
    """Return a wave's centre in each beat, half-widths before and after (ms), and factor."""
    row, time, early = rhythm.row, rhythm.time.astype(np.float64), rhythm.kind == EARLY
    one, narrow = np.ones(len(row)), shape == NARROW
    if name == "P":  # in an early beat: closer to the QRS, and inverted
        centre = time - body.pr[row] * np.where(early, 0.75, 1.0)
        return centre, 46 * one, 46 * one, np.where(rhythm.has_p, np.where(early, -0.6, 1.0), 0.0)
    if name == "T":  # as the square root of the interval before (Bazett)
        pace = np.sqrt(np.clip(rhythm.before, 280, 1300) / 800)
        centre = time + (95 + np.where(narrow, 165, 195) * body.qt[row]) * pace
        half = np.where(narrow, 95, 115) * pace
        return centre, half, half * body.skew[row], one
    if name == "spike":  # lasts 2 ms, but a recorder's filter widens it to a sample or two
        return time - 85, 9 * one, 11 * one, np.where(shape == DRIVEN, 1.0, 0.0)
    width = np.where(narrow, body.width[row], 0.8 + 0.2 * body.width[row])
    (own, own_half), (broad, broad_half) = _TIMES[name]
    half = np.where(narrow, own_half, broad_half) * width
    return time + np.where(narrow, own, broad) * width, half, half, one


def _add_atria(dipole: list[Float64], rhythm: Rhythm, u: Float64) -> None:
    """Add irregular fibrillatory waves (4 to 9 Hz) or the saw-tooth of flutter, in nV."""
    rows = np.flatnonzero(rhythm.fibrillates | rhythm.flutters)
    time = np.arange(SAMPLES) * STEP
    u = u[rows]
    late = np.clip((time - rhythm.turn[rows, None]) / 400, 0.0, 1.0)
    mixed = (rhythm.fibrillates & rhythm.flutters)[rows, None]
    flutter = np.where(mixed, late, rhythm.flutters[rows, None])
    slow = cosine(to_phase(u[:, 2:3]) + to_phase((0.2 + 0.3 * u[:, 3:4]) / 1000) * time)
    wobble = to_phase(0.35 * slow)
    fine = np.zeros((len(rows), SAMPLES))
    for k, (low, share) in enumerate([(4.2, 0.6), (5.6, 0.5), (7.1, 0.35)]):
        pitch = to_phase((low + 1.6 * u[:, 4 + k : 5 + k]) / 1000)
        phase = to_phase(u[:, 7 + k : 8 + k]) + pitch * time + (k + 1) * wobble
        fine = fine + share * cosine(phase)
    fine = fine * (20_000 + 75_000 * u[:, 10:11] * u[:, 10:11]) * (1 + 0.4 * slow)
    position = time / rhythm.flutter_period[rows, None] + u[:, 11:12]
    position = position - np.floor(position)
    falling, rising = 1 - position / 0.72, (position - 0.72) / 0.28
    tooth = 2 * np.where(position < 0.72, falling, rising) - 1
    tooth = tooth * (45_000 + 110_000 * u[:, 10:11])
    wave = flutter * tooth + (1 - flutter) * fine
    for axis, (saw, fibre) in enumerate([(-0.15, 0.35), (0.95, 0.45), (-0.3, -0.8)]):
        dipole[axis][rows] += wave * np.where(flutter > 0.5, saw, fibre)
