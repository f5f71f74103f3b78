"""The record that every test of this package returns: numbers, n, assumptions and a sentence."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from seedless.core.errors import StatsError


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The fields that all results have. No number in a result is ever NaN or infinite.

    Attributes:
        n: observations in each sample.
        assumption: what must hold for the numbers to mean what they say.
        sentence: the result in words.
    """

    n: tuple[int, ...]
    assumption: str
    sentence: str

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_finite(getattr(self, field.name), field.name)

    def __str__(self) -> str:
        counts = " and ".join(map(str, self.n))
        return f"{self.sentence}\n  n = {counts}; assumes {self.assumption}"

    def as_values(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        return asdict(self)


def _check_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise StatsError(
            f"{where} is {value}: the values are too large, too small or too far apart for "
            "float64. Scale them first"
        )
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple):
        for item in value:
            _check_finite(item, where)


def format_number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def format_interval(interval: tuple[float, float]) -> str:
    """Return an interval as [low, high]."""
    return f"[{format_number(interval[0])}, {format_number(interval[1])}]"
