"""Correction for many comparisons: Holm's step-down method (Holm 1979)."""

from collections.abc import Mapping
from dataclasses import dataclass

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_number
from seedless.stats.samples import check_share


@dataclass(frozen=True, kw_only=True)
class Holm(Answer):
    """For each comparison its p value, the adjusted one, and whether it survives at ``alpha``."""

    p: Mapping[str, float]
    adjusted: Mapping[str, float]
    survives: Mapping[str, bool]
    alpha: float


def holm(p_values: Mapping[str, float], alpha: float = 0.05) -> Holm:
    """Return the adjusted p values: the k-th smallest of m times m - k + 1, never decreasing.

    >>> dict(holm({"a": 0.01, "b": 0.04}).adjusted)
    {'a': 0.02, 'b': 0.04}
    """
    check_share(alpha, "alpha")
    if not p_values:
        raise StatsError("Holm's correction needs at least one p value, got none")
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise StatsError(f"{name}: expected a p value from 0 to 1, got {p!r}")
    ranked = sorted(p_values, key=lambda name: (p_values[name], name))
    adjusted: dict[str, float] = {}
    highest = 0.0
    for place, name in enumerate(ranked):
        highest = max(highest, min(1.0, p_values[name] * (len(ranked) - place)))
        adjusted[name] = highest
    adjusted = {name: adjusted[name] for name in p_values}
    survives = {name: value <= alpha for name, value in adjusted.items()}
    left = [name for name in ranked if survives[name]]
    smallest = ranked[0]
    return Holm(
        p={name: float(p) for name, p in p_values.items()},
        adjusted=adjusted,
        survives=survives,
        alpha=alpha,
        n=(len(ranked),),
        assumption="valid p values; nothing about how they depend on each other",
        sentence=f"Of {len(ranked)} comparisons {len(left)} survive at {format_number(alpha)}"
        f"{': ' + ', '.join(left) if left else ''}; the smallest p, {smallest}'s "
        f"{format_number(p_values[smallest])}, becomes {format_number(adjusted[smallest])}.",
    )
