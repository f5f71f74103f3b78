"""Charts as inline SVG: ROC curves, reliability diagrams, and the spread of a score over runs.

Like the learning curves they are plain strings: they take their colours from the page and are the
same to the byte. Each has a label in words for screen readers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from seedless.core.display import escape_text
from seedless.evaluate.calibration import Bin
from seedless.stats.samples import find_moments

_SIDE = 170.0  # of a square chart
_LEFT, _RIGHT, _TOP, _BOTTOM = 36.0, 8.0, 8.0, 36.0  # its margins, with room for the axes
_STRIP, _TALL = 240.0, 22.0  # of a strip: width and height
_PAD = 14.0  # empty at both ends of a strip, so that no mark and no number is cut


def draw_roc(name: str, points: Sequence[tuple[float, float]], auc: float) -> str:
    """Return an <svg> of (false positive rate, true positive rate) from (0, 0) to (1, 1)."""
    line = "M" + "L".join(f"{_across(x):.2f} {_up(y):.2f}" for x, y in points)
    area = f"{line}L{_across(1):.2f} {_up(0):.2f}L{_across(0):.2f} {_up(0):.2f}Z"
    label = f"ROC curve of {name}, area {auc:.3f}"
    axes = ("false positive rate", "true positive rate")
    return _square(label, axes, f'<path class="area" d="{area}"/><path class="trace" d="{line}"/>')


def draw_reliability(name: str, bins: Sequence[Bin], error: float) -> str:
    """Return an <svg> of the observed rate of a class (with interval) by predicted probability."""
    most = max((one.count for one in bins), default=1)
    marks = []
    for one in bins:
        if one.mean is None or one.rate is None or one.interval is None:
            continue
        x, y = _across(one.mean), _up(one.rate)
        low, high = _up(one.interval.low), _up(one.interval.high)
        radius = 1.6 + 3.4 * math.sqrt(one.count / most)
        marks.append(
            f'<path class="whisker" d="M{x:.2f} {low:.2f}V{high:.2f}"/>'
            f'<circle class="dot" cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}"/>'
        )
    label = f"Reliability of {name}, expected calibration error {error:.3f}"
    return _square(label, ("predicted probability", "observed rate"), "".join(marks))


def _square(label: str, axes: tuple[str, str], inside: str) -> str:
    """Return a chart from 0 to 1 on both axes, which are named, with its diagonal."""
    left, right, bottom, top = _across(0), _across(1), _up(0), _up(1)
    middle = (left + right) / 2
    texts = [
        f'<text x="{_across(tick):.2f}" y="{bottom + 12:.2f}" text-anchor="middle">{tick:g}</text>'
        f'<text x="{left - 4:.2f}" y="{_up(tick) + 3.5:.2f}" text-anchor="end">{tick:g}</text>'
        for tick in (0.0, 0.5, 1.0)
    ]
    height = (top + bottom) / 2
    texts.append(
        f'<text x="{middle:.2f}" y="{_SIDE - 8:.2f}" text-anchor="middle">{axes[0]}</text>'
        f'<text transform="translate(10 {height:.2f}) rotate(-90)" text-anchor="middle">'
        f"{axes[1]}</text>"
    )
    return (
        f'<svg class="square" viewBox="0 0 {_SIDE:g} {_SIDE:g}" role="img" '
        f'aria-label="{escape(escape_text(label))}">'
        f'<path class="frame" d="M{left} {top}H{right}V{bottom}H{left}Z"/>'
        f'<path class="chance" d="M{left} {bottom}L{right} {top}"/>{inside}{"".join(texts)}</svg>'
    )


def _across(value: float) -> float:
    return _LEFT + value * (_SIDE - _LEFT - _RIGHT)


def _up(value: float) -> float:
    return _SIDE - _BOTTOM - value * (_SIDE - _TOP - _BOTTOM)


@dataclass(frozen=True)
class Scale:
    """The range of values that a column of strips shares, with its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """Return the position of a value on a strip."""
        return _PAD + (value - self.low) / (self.high - self.low) * (_STRIP - 2 * _PAD)


def choose_scale(values: Sequence[float]) -> Scale:
    """Return the smallest range with round ends that holds all values, with 2 to 6 ticks."""
    low, high = min(values), max(values)
    steps = [power * digit for power in (0.001, 0.01, 0.1, 1.0) for digit in (1, 2, 5)]
    for step in steps:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= 5:
            last = max(last, first + 1)
            ticks = tuple(round(tick * step, 6) for tick in range(first, last + 1))
            return Scale(ticks[0], ticks[-1], ticks)
    return Scale(low, high, (low, high))


def draw_strip(name: str, values: Sequence[float], starred: Sequence[float], scale: Scale) -> str:
    """Return an <svg> with every run a dot, their mean and SD, and seed-free runs as stars."""
    middle = _TALL / 2
    parts = []
    if len(values) > 1:
        moments = find_moments(np.array(values))
        left, right = (scale.place(moments.mean + sign * moments.sd) for sign in (-1, 1))
        left, right = max(left, 0.0), min(right, _STRIP)
        parts.append(
            f'<path class="sd" d="M{left:.2f} {middle:.2f}H{right:.2f}"/>'
            f'<path class="mean" d="M{scale.place(moments.mean):.2f} 3V{_TALL - 3:.2f}"/>'
        )
    parts += [
        f'<circle class="one" cx="{scale.place(v):.2f}" cy="{middle:.2f}" r="3"/>' for v in values
    ]
    parts += [f'<path class="star" d="{_star(scale.place(v), middle, 6.5)}"/>' for v in starred]
    shown = ", ".join(f"{value:.3f}" for value in values)
    label = f"{name}: {shown}" + (
        f"; seed-free {', '.join(f'{v:.3f}' for v in starred)}" if starred else ""
    )
    grid = "".join(
        f'<path class="tick" d="M{scale.place(t):.2f} 0V{_TALL:g}"/>' for t in scale.ticks
    )
    return (
        f'<svg class="strip" viewBox="0 0 {_STRIP:g} {_TALL:g}" role="img" '
        f'aria-label="{escape(escape_text(label))}">{grid}{"".join(parts)}</svg>'
    )


def draw_axis(scale: Scale) -> str:
    """Return an <svg> with the numbers that belong under a column of strips."""
    marks = "".join(
        f'<text x="{scale.place(tick):.2f}" y="13" text-anchor="middle">{tick:g}</text>'
        for tick in scale.ticks
    )
    return f'<svg class="strip" viewBox="0 0 {_STRIP:g} 18" aria-hidden="true">{marks}</svg>'


def _star(x: float, y: float, radius: float) -> str:
    corners = [
        (
            x + (radius if corner % 2 == 0 else 0.42 * radius) * math.sin(math.pi * corner / 5),
            y - (radius if corner % 2 == 0 else 0.42 * radius) * math.cos(math.pi * corner / 5),
        )
        for corner in range(10)
    ]
    return "M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in corners) + "Z"
