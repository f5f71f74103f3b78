"""Would a difference have been seen, and how many runs would it take? The two-sample t test."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import nctdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show
from seedless.stats.samples import check_share

MOST = 10**9
_ASSUMPTION = "near-normal runs of equal variance, and that the true effect is the d given"


@dataclass(frozen=True, kw_only=True)
class Power(Answer):
    """The chance that a two-sided t test at ``alpha`` finds an effect of ``d``."""

    d: float
    alpha: float
    power: float


@dataclass(frozen=True, kw_only=True)
class RunsNeeded(Answer):
    """Runs per arm for a given power.

    ``exact`` solves the equation, ``per_arm`` is the next whole number; both are None where d is 0,
    or so small that a thousand million runs would not do. ``n`` is empty: nothing was observed.
    """

    d: float
    alpha: float
    power: float
    exact: float | None
    per_arm: int | None


def find_power(d: float, n: int, m: int | None = None, alpha: float = 0.05) -> Power:
    """Return the power with ``n`` and ``m`` runs (by default as many) at an effect of ``d``."""
    m = n if m is None else m
    if min(n, m) < 2:
        raise StatsError(f"power needs two runs in each arm, got {n} and {m}")
    value = _power(_check_effect(d), n, m, check_share(alpha, "alpha"))
    return Power(
        d=d,
        alpha=alpha,
        power=value,
        n=(n, m),
        assumption=_ASSUMPTION,
        sentence=f"An effect of d = {show(d)} is found with a chance of {value:.1%} "
        f"by {n} and {m} runs.",
    )


def find_runs_needed(d: float, power: float = 0.8, alpha: float = 0.05) -> RunsNeeded:
    """Return how many runs in each of two equal arms find an effect of ``d`` with ``power``."""
    check_share(power, "power")
    check_share(alpha, "alpha")
    exact = _solve(abs(_check_effect(d)), power, alpha)
    per_arm = None if exact is None else math.ceil(exact)
    if per_arm is None:
        sentence = f"No number of runs in reach finds an effect of d = {show(d)} with {power:.0%}."
    else:
        sentence = (
            f"To find an effect of d = {show(d)} with {power:.0%} takes {per_arm} runs per arm."
        )
    return RunsNeeded(
        d=d,
        alpha=alpha,
        power=power,
        exact=exact,
        per_arm=per_arm,
        n=(),
        assumption=_ASSUMPTION,
        sentence=sentence,
    )


def _check_effect(d: float) -> float:
    if not math.isfinite(d):
        raise StatsError(f"d: expected a finite effect size, got {d!r}")
    return float(d)


def _power(d: float, n: float, m: float, alpha: float) -> float:
    """Sum both tails; the upper one as the lower tail of the mirror image, which keeps digits."""
    df = n + m - 2
    bound = float(-stdtrit(df, alpha / 2))
    shift = abs(d) * math.sqrt(n * m / (n + m))
    if shift > 40 * (bound + 1):
        return 1.0  # out of reach of the distribution, and short of 1 by less than float64 shows
    tails = float(nctdtr(df, -shift, -bound)) + float(nctdtr(df, shift, -bound))
    return min(1.0, tails)


def _solve(d: float, power: float, alpha: float) -> float | None:
    low, high = 2.0, 4.0
    if _power(d, low, low, alpha) >= power:
        return low
    while _power(d, high, high, alpha) < power:
        low, high = high, high * 2
        if high > MOST:
            return None
    for _ in range(100):
        middle = (low + high) / 2
        if _power(d, middle, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high
