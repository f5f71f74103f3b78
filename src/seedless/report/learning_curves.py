"""Learning curves, and digests as bars, as inline SVG.

They are plain strings, so that they take their colours from the page (currentColor, light or dark)
and are the same to the byte. A drawing is 360 units wide, about its size in pixels on a phone, so
that its text is readable there.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from seedless.core.display import escape_text

_WIDTH, _HEIGHT = 360.0, 210.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 14.0, 34.0
_DOTS = 20  # with more points than this only the last gets a dot
_TICKS = 5  # at most so many intervals on the vertical axis
_COLOURS, _DASHES = 6, 3  # of lines in style.css: tone-0 to tone-5, dash-0 to dash-2
MOST_TOLD_APART = _COLOURS * _DASHES


@dataclass(frozen=True)
class Series:
    """A line: (epoch, value) in order of epoch. ``role``: its look, of `choose_roles`."""

    label: str
    points: tuple[tuple[int, float], ...]
    role: str = "alone"


@dataclass(frozen=True)
class _Frame:
    """Maps epochs and values to the drawing; vertical ticks are ``low..high`` times ``size``."""

    epochs: tuple[int, int]
    low: int
    high: int
    size: float
    decimals: int

    def x(self, epoch: float) -> float:
        first, last = self.epochs
        share = (epoch - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (value / self.size - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def choose_roles(same: Sequence[bool], controls: int = 0) -> list[str]:
    """Return the look of each run's line, then that of each control's, as classes of style.css.

    ``same`` says of each run whether it has the bits of the first. Equal runs are drawn on top of
    each other; runs that differ each have a colour and a dash of their own, as far as these go. The
    dash changes with every run: a line below another is seen through its gaps, and lines are told
    apart without their colours.

    >>> choose_roles([True, True], controls=1)
    ['first', 'repeat', 'control']
    >>> choose_roles([True, False])
    ['tone-0 dash-0', 'tone-1 dash-1']
    """
    if len(same) > MOST_TOLD_APART and not all(same):
        roles = ["crowd"] * len(same)
    elif not all(same):
        places = range(len(same))
        roles = [
            f"tone-{place % _COLOURS} dash-{(place + place // _COLOURS) % _DASHES}"
            for place in places
        ]
    else:
        roles = ["alone"] if len(same) == 1 else ["first", *["repeat"] * (len(same) - 1)]
    return [*roles, *["control"] * controls]


def draw_curves(
    name: str, series: Sequence[Series], selected: int | None = None, unit: str = "epoch"
) -> str:
    """Return an <svg> of values by epoch, or "" where there is no finite value to draw.

    ``unit``: what the first numbers of the points count, if not epochs.

    A repeat is drawn as a thin line on the first run's broad one: where both are visible, they
    agree. An epoch whose value is not finite keeps its place on the axis.
    """
    epochs = [epoch for s in series for epoch, _ in s.points]
    series = [Series(s.label, _finite(s.points), s.role) for s in series]
    series = [s for s in series if s.points]
    if not series:
        return ""
    frame = _frame(series, (min(epochs), max(epochs)))
    label = "; ".join(
        f"{s.label}: {s.points[0][1]:.4g} at {unit} {s.points[0][0]}, "
        f"{s.points[-1][1]:.4g} at {unit} {s.points[-1][0]}"
        for s in series
    )
    parts = [
        f'<svg class="curves" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'aria-label="{escape(escape_text(f"{name} by {unit}. {label}"))}">',
        *_draw_axes(frame, name, unit),
        *(_draw_selected(frame, selected) if selected is not None else ()),
        *(_draw_line(frame, s) for s in series),
        "</svg>",
    ]
    return "\n".join(parts)


def draw_fingerprint(digest: str) -> str:
    """Return an <svg> with one bar for each hex digit, so that digests can be compared by eye."""
    bars = "".join(
        f"M{4 * place} 34v-{2 * int(digit, 16) + 2}h3v{2 * int(digit, 16) + 2}z"
        for place, digit in enumerate(digest)
        if digit in "0123456789abcdef"
    )
    return (
        f'<svg class="fingerprint" viewBox="0 0 {4 * len(digest)} 34" aria-hidden="true" '
        f'preserveAspectRatio="none"><path fill="currentColor" d="{bars}"/></svg>'
    )


def _finite(points: Iterable[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    return tuple((epoch, value) for epoch, value in points if math.isfinite(value))


def _frame(series: Sequence[Series], epochs: tuple[int, int]) -> _Frame:
    values = [value for s in series for _, value in s.points]
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(abs(low), abs(high), 1.0):  # a flat line gets room around it
        room = 0.05 * max(abs(low), 0.1)
        low, high = low - room, high + room
    step, power = _tick(high - low)
    size = step * 10.0**power
    return _Frame(
        epochs,
        math.floor(low / size + 1e-9),
        math.ceil(high / size - 1e-9),
        size,
        max(0, -power),
    )


def _tick(span: float) -> tuple[int, int]:
    """Return the smallest (1, 2 or 5, power of ten) that cuts a span into few intervals."""
    choices = ((step, power) for power in range(-12, 300) for step in (1, 2, 5))
    return next(c for c in choices if span <= _TICKS * c[0] * 10.0 ** c[1])


def _draw_axes(frame: _Frame, name: str, unit: str) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = ['<g class="axis">']
    for tick in range(frame.low, frame.high + 1):
        value = tick * frame.size
        y = frame.y(value)
        parts.append(f'<path d="M{_LEFT:.2f} {y:.2f}H{right:.2f}"/>')
        parts.append(
            f'<text x="{_LEFT - 6:.2f}" y="{y + 4:.2f}" text-anchor="end">'
            f"{value:.{frame.decimals}f}</text>"
        )
    for epoch in _epoch_ticks(*frame.epochs):
        parts.append(
            f'<text x="{frame.x(epoch):.2f}" y="{bottom + 16:.2f}" text-anchor="middle">'
            f"{epoch}</text>"
        )
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle:.2f}" y="{_HEIGHT - 3:.2f}" text-anchor="middle">{unit}</text>')
    height = (_TOP + bottom) / 2
    parts.append(
        f'<text transform="translate(11 {height:.2f}) rotate(-90)" text-anchor="middle">'
        f"{escape(escape_text(name[:1].lower() + name[1:]))}</text>"
    )
    return [*parts, "</g>"]


def _epoch_ticks(first: int, last: int) -> list[int]:
    step, power = _tick((last - first) / 2)  # twice as many fit as on the vertical axis
    every = max(1, round(step * 10.0**power))
    return list(range(-(-first // every) * every, last + 1, every)) or [first]


def _draw_selected(frame: _Frame, epoch: int) -> list[str]:
    if not frame.epochs[0] <= epoch <= frame.epochs[1]:
        return []
    x = frame.x(epoch)
    late = x > _WIDTH / 2
    anchor, shift = ("end", -5.0) if late else ("start", 5.0)
    return [
        f'<g class="selected"><path d="M{x:.2f} {_TOP - 8:.2f}V{_HEIGHT - _BOTTOM:.2f}"/>'
        f'<text x="{x + shift:.2f}" y="{_TOP - 3:.2f}" text-anchor="{anchor}">selected</text></g>'
    ]


def _draw_line(frame: _Frame, series: Series) -> str:
    places = [(frame.x(epoch), frame.y(value)) for epoch, value in series.points]
    line = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x:.2f}" cy="{y:.2f}" r="2.6"/>'
        for x, y in (places if len(places) <= _DOTS else places[-1:])
    )
    return f'<g class="line {escape(series.role)}"><path d="{line}"/>{dots}</g>'
