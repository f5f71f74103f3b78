"""Several groups at once: Friedman's test of their levels, Levene's of their spreads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show
from seedless.stats.samples import Values, find_moments, read_sample


@dataclass(frozen=True, kw_only=True)
class Friedman(Answer):
    """Friedman's chi-square over blocks, corrected for ties, and each group's mean rank."""

    statistic: float
    df: int
    p: float
    mean_ranks: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Levene(Answer):
    """Levene's F of the distances from each group's centre, with each group's SD."""

    statistic: float
    df: tuple[int, int]
    p: float
    centre: str
    sds: Mapping[str, float]


def friedman(groups: Mapping[str, Values]) -> Friedman:
    """Test whether three or more groups differ in level; values in the same place are a block.

    chi^2 = 12 / (b k (k + 1)) sum R_j^2 - 3 b (k + 1), over 1 - sum(t^3 - t) / (b k (k^2 - 1)).
    """
    table = _read_groups(groups, 3)
    lengths = {len(values) for values in table.values()}
    if len(lengths) > 1:
        raise StatsError(f"blocks need groups of equal length, got {sorted(lengths)}")
    rows = np.stack(list(table.values()), axis=1)
    blocks, k = rows.shape
    ranked = [_rank(row) for row in rows]
    sums = np.sum([ranks for ranks, _ in ranked], axis=0)
    ties = sum(tie for _, tie in ranked)
    correction = 1 - ties / (blocks * k * (k * k - 1))
    if correction == 0:
        raise StatsError("every block is tied throughout: there are no ranks to compare")
    raw = 12 / (blocks * k * (k + 1)) * float(np.sum(sums**2)) - 3 * blocks * (k + 1)
    statistic = max(0.0, raw / correction)
    p = float(chdtrc(k - 1, statistic))
    return Friedman(
        statistic=statistic,
        df=k - 1,
        p=p,
        mean_ranks={name: float(total) / blocks for name, total in zip(table, sums, strict=True)},
        n=(blocks,) * k,
        assumption=f"independent blocks; a chi-square limit that {blocks} blocks approach",
        sentence=f"Over {blocks} blocks the {k} groups "
        f"{'' if p < 0.05 else 'are not shown to '}differ in level: "
        f"Friedman chi-square = {show(statistic)}, df = {k - 1}, p = {show(p)}.",
    )


def levene(groups: Mapping[str, Values], centre: str = "median") -> Levene:
    """Test whether groups differ in spread: one-way analysis of |x - centre of its group|.

    The median (Brown and Forsythe 1974) holds its level for skewed values; the mean is Levene's.
    """
    if centre not in ("median", "mean"):
        raise StatsError(f"centre: expected 'median' or 'mean', got {centre!r}")
    table = _read_groups(groups, 2)
    moments = {name: find_moments(values) for name, values in table.items()}
    distances = {}
    for name, values in table.items():
        middle = float(np.median(values)) if centre == "median" else moments[name].mean
        distances[name] = np.abs(values - middle)
    everything = np.concatenate(list(distances.values()))
    total, k = len(everything), len(table)
    grand = math.fsum(everything) / total
    means = {name: math.fsum(part) / len(part) for name, part in distances.items()}
    between = math.fsum(len(distances[name]) * (means[name] - grand) ** 2 for name in table)
    within = math.fsum(math.fsum((distances[name] - means[name]) ** 2) for name in table)
    if within <= (4 * 2.0**-52 * float(np.abs(np.concatenate(list(table.values()))).max())) ** 2:
        raise StatsError("within each group all values are equally far from its centre: no F")
    statistic = (total - k) / (k - 1) * between / within
    p = float(fdtrc(k - 1, total - k, statistic))
    return Levene(
        statistic=statistic,
        df=(k - 1, total - k),
        p=p,
        centre=centre,
        sds={name: moment.sd for name, moment in moments.items()},
        n=tuple(len(values) for values in table.values()),
        assumption="independent runs",
        sentence=f"The groups {'' if p < 0.05 else 'are not shown to '}differ in spread: Levene's "
        f"F = {show(statistic)} about the {centre}, p = {show(p)}.",
    )


def _read_groups(groups: Mapping[str, Values], least: int) -> dict[str, NDArray[np.float64]]:
    if len(groups) < least:
        raise StatsError(f"expected at least {least} groups, got {len(groups)}")
    return {name: read_sample(values, name) for name, values in groups.items()}


def _rank(row: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return mid-ranks from 1, and the sum of t^3 - t over ties of t values."""
    _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: NDArray[np.float64] = ends - (counts - 1) / 2
    return middle[inverse], int(np.sum(counts**3 - counts))
