"""Tests of several groups: Friedman's of their levels, Levene's of their spreads."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_number
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
    """Return Friedman's test: do three or more groups differ in level? (Friedman 1937).

    Values at the same place are a block, such as the runs of one seed. With ranks R_j summed over b
    blocks of k groups, and t tied values at a time,
    chi^2 = (12 / (b k (k + 1)) sum R_j^2 - 3 b (k + 1)) / (1 - sum(t^3 - t) / (b k (k^2 - 1))).

    >>> friedman({"a": [1, 2, 3], "b": [2, 3, 4], "c": [3, 4, 5]}).statistic
    6.0
    """
    from scipy.stats import friedmanchisquare, rankdata

    table = _read_groups(groups, 3)
    lengths = {len(values) for values in table.values()}
    if len(lengths) > 1:
        raise StatsError(f"blocks need groups of equal length, got {sorted(lengths)}")
    rows = np.stack(list(table.values()), axis=1)
    blocks, k = rows.shape
    if (rows == rows[:, :1]).all():
        raise StatsError("every block is tied throughout: there are no ranks to compare")
    result = friedmanchisquare(*rows.T)
    statistic = max(0.0, float(result.statistic))  # rounding may leave it just below 0
    p = min(1.0, float(result.pvalue))
    ranks = rankdata(rows, axis=1).sum(axis=0)
    return Friedman(
        statistic=statistic,
        df=k - 1,
        p=p,
        mean_ranks={name: float(total) / blocks for name, total in zip(table, ranks, strict=True)},
        n=(blocks,) * k,
        assumption=f"independent blocks; a chi-square limit that {blocks} blocks approach",
        sentence=f"Over {blocks} blocks the {k} groups "
        f"{'' if p < 0.05 else 'are not shown to '}differ in level: "
        f"Friedman chi-square = {format_number(statistic)}, df = {k - 1}, p = {format_number(p)}.",
    )


def levene(groups: Mapping[str, Values], centre: str = "median") -> Levene:
    """Return Levene's test: do groups differ in spread?

    It is the one-way analysis of variance of the distances |x - centre of its group|. With the
    ``centre`` "median" (Brown and Forsythe 1974) it keeps its significance level for skewed values;
    with "mean" it is Levene's own (1960).
    """
    from scipy.stats import levene as compute_levene

    if centre not in ("median", "mean"):
        raise StatsError(f"centre: expected 'median' or 'mean', got {centre!r}")
    # Sorted, so that the order of the runs cannot change the last bits of a sum.
    table = {name: np.sort(values) for name, values in _read_groups(groups, 2).items()}
    middle = np.median if centre == "median" else np.mean
    distances = [np.abs(values - middle(values)) for values in table.values()]
    rounding = 4 * 2.0**-52 * max(float(np.abs(values).max()) for values in table.values())
    if all(float(np.ptp(part)) <= rounding for part in distances):
        raise StatsError("within each group all values are equally far from its centre: no F")
    result = compute_levene(*table.values(), center=centre)
    statistic, p = float(result.statistic), float(result.pvalue)
    total, k = sum(map(len, distances)), len(table)
    return Levene(
        statistic=statistic,
        df=(k - 1, total - k),
        p=p,
        centre=centre,
        sds={name: find_moments(values).sd for name, values in table.items()},
        n=tuple(len(values) for values in table.values()),
        assumption="independent runs",
        sentence=f"The groups {'' if p < 0.05 else 'are not shown to '}differ in spread: Levene's "
        f"F = {format_number(statistic)} about the {centre}, p = {format_number(p)}.",
    )


def _read_groups(groups: Mapping[str, Values], least: int) -> dict[str, NDArray[np.float64]]:
    if len(groups) < least:
        raise StatsError(f"expected at least {least} groups, got {len(groups)}")
    return {name: read_sample(values, name) for name, values in groups.items()}
