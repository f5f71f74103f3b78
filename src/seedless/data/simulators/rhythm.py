"""Times and kinds of heart beats for each rhythm, in whole milliseconds.

A rhythm is a few parameters (`_choose_parameters`) and a rule for the next interval
(`_simulate_intervals`). Labels combine: AFIB with PACE is pacing over a fibrillating atrium, STACH
with BIGU is a fast bigeminy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.data.simulators.exact_math import (
    Float64,
    Int64,
    cosine,
    draw_rows,
    near_normal,
    to_phase,
)
from seedless.data.simulators.population import CLASSES, People

NORMAL, EARLY, WIDE, PACED, NODAL = range(5)  # kinds of beat: EARLY is narrow, NODAL has no P wave
LENGTH = 10_000  # ms
_LEAD_IN = 1_500  # ms simulated before the strip starts
_REACH = 700  # ms outside the strip within which a beat may have waves inside it
_MAX_BEATS = 64  # per record: at the shortest interval they cover 17 s
_SHORTEST = 270  # ms between two beats

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rhythm:
    """The beats of n records, ordered by record and time, and the state of their atria.

    Attributes:
        row: (beats,) number of the record, from 0 to n - 1.
        time: (beats,) ms from the strip's start to the R peak; up to 0.7 s outside the strip.
        before: (beats,) ms since the previous beat.
        kind: (beats,) NORMAL, EARLY, WIDE, PACED or NODAL.
        has_p: (beats,) whether the beat has a P wave.
        fibrillates: (n,) whether fibrillatory waves replace the P waves.
        flutters: (n,) whether saw-tooth waves do; with both, fibrillation becomes flutter.
        flutter_period: (n,) ms between two flutter waves.
        turn: (n,) ms at which fibrillation becomes flutter, or pacing sinus rhythm.
        breath: (n,) phase of respiration per ms; breath_start: (n,) its phase at 0 ms.
    """

    row: Int64
    time: Int64
    before: Int64
    kind: Int64
    has_p: Mask
    fibrillates: Mask
    flutters: Mask
    flutter_period: Float64
    turn: Int64
    breath: Int64
    breath_start: Int64


def simulate_beats(records: Int64, people: People) -> Rhythm:
    """Return the beats of these records; each record's depend on its number and labels alone."""
    plan = _choose_parameters(records, people)
    time, kind = _simulate_intervals(plan, draw_rows(records, "simulated beats", 5 * _MAX_BEATS))
    before = np.diff(time, axis=1, prepend=time[:, :1] - 800)
    has_p = (kind == NORMAL) | (kind == EARLY) | ((kind == PACED) & plan["paces_atria"][:, None])
    has_p &= ~(plan["fibrillates"] | plan["flutters"])[:, None]
    row, place = np.nonzero((time > -_REACH) & (time < LENGTH + _REACH))
    per_row = ("fibrillates", "flutters", "flutter_period", "turn", "breath", "breath_start")
    return Rhythm(
        row=row,
        time=time[row, place],
        before=before[row, place],
        kind=kind[row, place],
        has_p=has_p[row, place],
        **{name: plan[name] for name in per_row},
    )


def _choose_parameters(records: Int64, people: People) -> dict[str, Any]:
    """Return the parameters of each record's rhythm by name, each (n,)."""
    has = {name: people.labels[:, k] == 1 for k, name in enumerate(CLASSES)}
    bare = ~people.labels.any(axis=1)
    u = draw_rows(records, "simulated rhythm", 24).T
    junction = bare & (u[2] < 0.3)
    drops = bare & (u[2] >= 0.3) & (u[2] < 0.55)
    rate, flutter_period, block = _rates(has, u, people)
    rate = np.where(junction, 42 + 26 * u[0], rate)
    fast = 150 + 65 * u[3]
    onset = np.where(has["PSVT"], 2_200 + 4_600 * u[4], 1e9)
    onset = np.where(has["PSVT"] & has["SVTAC"], 1_500 + 1_500 * u[4], onset)
    depth = np.where(has["SARRH"], 0.13 + 0.12 * u[5], 0.05 * u[5] * u[6])
    steady = has["PACE"] | has["SVTAC"] | has["AFLT"]
    jitter = np.where(steady, 0.004, 0.008 + 0.025 * u[7] * u[8])
    jitter = np.where(has["AFIB"] & ~has["PACE"], 0.20 + 0.10 * u[7], jitter)
    every = np.where(has["BIGU"], 2, np.where(has["TRIGU"], 3, 0))
    every = np.where(has["SVARR"] & (every == 0), 4 + np.floor(3 * u[9]).astype(np.int64), every)
    sinus = has["SR"] | has["STACH"] | has["SBRAD"] | has["SARRH"] | has["AFIB"] | bare
    wide = has["BIGU"] | has["TRIGU"]
    stray = np.where(sinus & (u[10] < 0.10), 0.05 + 0.12 * u[11], 0.0)
    stray = np.where(wide | has["PACE"] | has["AFLT"], 0.0, stray)
    stray = np.where(has["SVARR"], 0.10 + 0.15 * u[11], stray)
    return {
        "interval": 60_000 / rate,
        "fast": 60_000 / fast,
        "onset": onset,
        "jitter": jitter,
        "depth": np.where(has["PACE"], 0.0, depth),
        "every": every,
        "shift": np.floor(3 * u[12]).astype(np.int64),
        "stray": stray,
        "wide": wide | (~has["SVARR"] & (u[13] < 0.25)),
        "coupling": np.where(wide, 0.50 + 0.15 * u[14], 0.56 + 0.18 * u[14]),
        "pause": np.where(wide, 1.0, 0.55 + 0.35 * u[15]),
        "drops": np.where(drops, 3 + np.floor(3 * u[9]).astype(np.int64), 0),
        "flutters": has["AFLT"],
        "flutter_period": flutter_period,
        "block": block,
        "fibrillates": has["AFIB"],
        "paced": has["PACE"],
        "stops_pacing": has["PACE"] & has["SR"],
        "paces_atria": u[16] < 0.45,
        "nodal": junction | (has["SVTAC"] & ~has["PSVT"]),
        "turn": np.rint(3_000 + 4_000 * u[17]).astype(np.int64),
        "start": np.rint(_LEAD_IN + 60_000 / rate * u[18]).astype(np.int64),
        "breath": to_phase((0.17 + 0.16 * u[19]) / 1000),
        "breath_start": to_phase(u[20]),
    }


def _rates(has: dict[str, Mask], u: Float64, people: People) -> tuple[Float64, Float64, Int64]:
    """Return beats per minute, ms between flutter waves, flutter waves per beat (0: changing)."""
    lively = np.where(people.female, 2.0, 0.0) - 0.06 * (people.age - 60)
    rate = np.clip(61 + 38 * u[0] * (0.3 + 0.7 * u[1]) + lively, 61.5, 98)
    rate = np.where(has["STACH"], 103 + 42 * u[0] * u[1], rate)
    rate = np.where(has["SBRAD"], 57.5 - 17 * u[0] * u[1], rate)
    rate = np.where(has["SARRH"], 58 + 30 * u[0], rate)
    rate = np.where(has["SARRH"] & has["SBRAD"], 46 + 9 * u[0], rate)
    rate = np.where(has["AFIB"], 62 + 70 * u[0] * (0.4 + 0.6 * u[1]), rate)
    rate = np.where(has["PACE"], np.where(has["SBRAD"], 51 + 6 * u[0], 60 + 22 * u[0] * u[1]), rate)
    rate = np.where(has["SVTAC"] & ~has["PSVT"], 152 + 58 * u[0], rate)
    period = 178 + 70 * u[21]
    period = np.where(has["STACH"], 205 + 70 * u[21], period)
    period = np.where(has["SVTAC"], 178 + 16 * u[21], period)
    block = np.array([2, 3, 4, 4, 0, 0])[np.floor(6 * u[22]).astype(np.int64)]
    block = np.where(has["STACH"] | has["SVTAC"], 2, block)
    block = np.where(has["SVARR"] | has["AFIB"], 0, np.where(has["SR"], 4, block))
    return rate, period, block


def _simulate_intervals(plan: dict[str, Any], uniforms: Float64) -> tuple[Int64, Int64]:
    """Return times and kinds of 64 beats per record, each (n, 64), from (n, 320) uniforms."""
    u = uniforms.reshape(len(uniforms), _MAX_BEATS, 5)
    spread = near_normal(u[:, :, :3])
    times, kinds = np.empty(u.shape[:2], np.int64), np.empty(u.shape[:2], np.int64)
    now = -plan["start"]
    was_early = np.zeros(len(u), bool)
    for k in range(_MAX_BEATS):
        # [Step 1] The regular interval: breathing, variation, or a number of flutter waves.
        swing = plan["depth"] * cosine(plan["breath_start"] + plan["breath"] * now)
        wander = np.clip(1 + plan["jitter"] * spread[:, k], 0.45, 2.0)
        interval = plan["interval"] * (1 + swing) * wander
        waves = np.where(plan["block"] > 0, plan["block"], 2 + np.floor(3 * u[:, k, 4]))
        interval = np.where(plan["flutters"], plan["flutter_period"] * waves, interval)
        # [Step 2] Is this beat early? Regularly (bigeminy), or by chance, never twice in a row.
        on_beat = (plan["every"] > 0) & ((k + plan["shift"]) % np.maximum(plan["every"], 1) == 0)
        runs = now >= plan["onset"]
        early = (on_beat | (u[:, k, 3] < plan["stray"])) & ~was_early & ~runs
        early &= ~(plan["flutters"] & ~plan["wide"])
        # [Step 3] Early beats are followed by a pause; some beats are dropped; a paroxysm is fast.
        rest = 1 + (1 - plan["coupling"]) * plan["pause"]
        interval = np.where(was_early, interval * rest, interval)
        interval = np.where(early, interval * plan["coupling"], interval)
        dropped = (plan["drops"] > 0) & (k % np.maximum(plan["drops"], 1) == 0)
        interval = np.where(dropped, 1.9 * interval, interval)
        interval = np.where(runs, plan["fast"] * (1 + 0.008 * spread[:, k]), interval)
        # [Step 4] Go to the beat, and decide what kind it is.
        now = now + np.maximum(np.rint(interval).astype(np.int64), _SHORTEST)
        paced = plan["paced"] & ~(plan["stops_pacing"] & (now > plan["turn"]))
        kind = np.where(plan["nodal"] | runs, NODAL, np.where(paced, PACED, NORMAL))
        kinds[:, k] = np.where(early, np.where(plan["wide"], WIDE, EARLY), kind)
        times[:, k] = now
        was_early = early
    return times, kinds
