"""The power of the two-sample t test, and the number of runs that it takes to reach a power.

With n and m runs and a true effect of d standard deviations, t has a noncentral t distribution with
n + m - 2 degrees of freedom and noncentrality d sqrt(n m / (n + m)). Power is the probability that
|t| exceeds the two-sided critical value (Cohen 1988, section 2).
"""

import math
from dataclasses import dataclass

from scipy.special import nctdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_number
from seedless.stats.samples import check_share

MAX_RUNS = 10**9
_ASSUMPTION = "near-normal runs of equal variance, and that the true effect is the d given"


@dataclass(frozen=True, kw_only=True)
class Power(Answer):
    """The probability that a two-sided t test at significance ``alpha`` detects an effect ``d``."""

    d: float
    alpha: float
    power: float


@dataclass(frozen=True, kw_only=True)
class RunsNeeded(Answer):
    """The number of runs per arm that reach ``power``.

    ``exact`` solves the equation and ``per_arm`` is the next whole number; both are None where d is
    0, or so small that `MAX_RUNS` would not be enough. ``n`` is empty: nothing was observed.
    """

    d: float
    alpha: float
    power: float
    exact: float | None
    per_arm: int | None


def find_power(d: float, n: int, m: int | None = None, alpha: float = 0.05) -> Power:
    """Return the power of ``n`` and ``m`` runs (by default also ``n``) for an effect of ``d`` SDs.

    >>> round(find_power(0.5, 64).power, 3)
    0.801
    """
    m = n if m is None else m
    if min(n, m) < 2:
        raise StatsError(f"power needs two runs in each arm, got {n} and {m}")
    value = _compute_power(_check_effect(d), n, m, check_share(alpha, "alpha"))
    return Power(
        d=d,
        alpha=alpha,
        power=value,
        n=(n, m),
        assumption=_ASSUMPTION,
        sentence=f"An effect of d = {format_number(d)} is found with a chance of {value:.1%} "
        f"by {n} and {m} runs.",
    )


def find_runs_needed(d: float, power: float = 0.8, alpha: float = 0.05) -> RunsNeeded:
    """Return how many runs in each of two equal arms detect an effect of ``d`` with ``power``.

    >>> find_runs_needed(0.5).per_arm
    64
    """
    check_share(power, "power")
    check_share(alpha, "alpha")
    exact = _solve_runs(abs(_check_effect(d)), power, alpha)
    per_arm = None if exact is None else math.ceil(exact)
    effect = f"an effect of d = {format_number(d)} with {power:.0%}"
    if per_arm is None:
        sentence = f"No number of runs in reach finds {effect}."
    else:
        sentence = f"To find {effect} takes {per_arm} runs per arm."
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


def _compute_power(d: float, n: float, m: float, alpha: float) -> float:
    """Return P(|t| > critical value); n and m may be fractions, for the root search."""
    df = n + m - 2
    bound = float(-stdtrit(df, alpha / 2))
    shift = abs(d) * math.sqrt(n * m / (n + m))
    if shift > 40 * (bound + 1):
        return 1.0  # nctdtr fails here, and the power is below 1 by less than float64 can show
    # P(t > bound) is computed as P(t < -bound) of the mirrored distribution, which loses no digits
    # to a subtraction from 1.
    tails = float(nctdtr(df, -shift, -bound)) + float(nctdtr(df, shift, -bound))
    return min(1.0, tails)


def _solve_runs(d: float, power: float, alpha: float) -> float | None:
    """Return the number of runs per arm, as a fraction, whose power is ``power``."""
    from scipy.optimize import brentq

    def excess(n: float) -> float:
        return _compute_power(d, n, n, alpha) - power

    # [Step 1] Double the number of runs until the power is enough.
    low, high = 2.0, 4.0
    if excess(low) >= 0:
        return low
    while excess(high) < 0:
        low, high = high, high * 2
        if high > MAX_RUNS:
            return None
    # [Step 2] The root is between too few runs and enough.
    return float(brentq(excess, low, high, xtol=1e-15))
