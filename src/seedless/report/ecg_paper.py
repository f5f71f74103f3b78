"""A recording on ECG paper.

ECG paper has 25 mm per second and 10 mm per millivolt, in boxes of 1 and 5 mm. The figure is drawn
to scale: printed at its own size, it can be measured with a ruler. Where the rate or the unit of a
record is not known, or it is too long for the paper, another scale is used and printed below it.
A narrow figure, for a phone, has every lead in full below the others, at a scale that is printed.

A millimetre is a whole number of pixels, and every line of the grid begins at one: so the lines
have equal distances. A page shows two of these pixels as one, or all of them on a fine screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.display import escape_plot_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MM_PER_SECOND = 25.0
MM_PER_MILLIVOLT = 10.0
MM_PER_INCH = 25.4
POINTS_PER_INCH = 72.0
MILLIVOLTS = "mV"
_BELOW_TRACES = 1.9  # matplotlib draws lines at 2: a name must not hide a part of the signal
NARROW = 92.0  # millimetres that a phone has room for: 368 pixels of a page
EVIDENCE = "evidence (Grad-CAM)"
_LONGEST = 750.0  # millimetres of a trace: 30 seconds; a longer record is drawn narrower
_UNTIMED = 250.0  # millimetres of a trace whose samples per second are not known
_MOST_ROWS = 24  # leads in a figure; of more, the first ones are drawn

_PAPER, _FINE, _BOLD, _TRACE, _INK = "#fffdfb", "#f7dcd8", "#e3a298", "#1b1b1f", "#44444a"
_TINT = (1.0, 0.66, 0.1)
_STRONGEST = 0.55  # the opacity of the tint where a map is 1

# The usual printout: four columns of three leads, 2.5 s each, above one lead for the whole strip.
_COLUMNS = (("I", "II", "III"), ("aVR", "aVL", "aVF"), ("V1", "V2", "V3"), ("V4", "V5", "V6"))


@dataclass(frozen=True)
class _Layout:
    """Sizes in millimetres, apart from ``pixels``, which a millimetre has, and ``letters``, in pt.

    ``start`` is where the traces begin, ``row`` the distance of two baselines, ``head`` the room
    above the first row and ``foot`` below the last one.
    """

    start: float
    row: float
    head: float
    foot: float
    scale: float  # mm per mV
    pixels: int
    letters: float
    grid: tuple[tuple[float, str], ...]  # distance and colour of lines, which are a pixel wide
    margin: float = 8.0

    def baseline(self, height: float, row: int) -> float:
        return height - self.head - (row + 0.5) * self.row


_FULL = _Layout(
    start=18.0,  # 10 mm are left for the calibration pulse of 1 mV and 0.2 s
    row=30.0,
    head=15.0,
    foot=10.0,
    scale=MM_PER_MILLIVOLT,
    pixels=6,
    letters=11.0,
    grid=((1.0, _FINE), (5.0, _BOLD)),
)
_PHONE = _Layout(
    start=14.0,  # the names of the leads stand before the traces
    row=10.0,
    head=10.0,
    foot=10.0,
    scale=MM_PER_MILLIVOLT / 2,
    pixels=8,
    letters=9.0,
    grid=((5.0, _BOLD),),
    margin=3.0,
)


def draw_ecg(
    signal: NDArray[np.float32],
    leads: Sequence[str] | None,
    fs: float | None,
    title: str = "",
    units: str | None = MILLIVOLTS,
    emphasis: NDArray[np.float32] | None = None,
    *,
    meaning: str = EVIDENCE,
    narrow: bool = False,
) -> Figure:
    """Draw (leads, time) as a figure.

    Twelve leads take the usual layout of 3 x 4 with a rhythm strip of lead II; any other set takes
    one row per lead, as does every ``narrow`` figure. With ``leads=None`` they are numbered. With
    other ``units`` than millivolts, or None where they are not known, the scale is chosen so that
    the trace fits, and printed on the paper. With ``fs=None`` the samples per second are unknown,
    and no speed is printed. ``emphasis`` (time,) from 0 to 1 tints the times that matter to a
    prediction, with a scale of the tint that is called ``meaning``.
    """
    from matplotlib.figure import Figure

    # [Step 1] Layout: the leads that are drawn, and how many millimetres a sample takes.
    layout = _PHONE if narrow else _FULL
    count, length = signal.shape
    names = [f"lead {k}" for k in range(1, count + 1)] if leads is None else list(leads)
    usual = not narrow and set(names) == {lead for column in _COLUMNS for lead in column}
    rows = 4 if usual else min(count, _MOST_ROWS)
    span = _choose_span(length, fs, layout, narrow)
    width = NARROW if narrow else math.ceil(span + layout.start + layout.margin)
    height = rows * layout.row + layout.head + layout.foot
    # [Step 2] The paper, the tint and the calibration pulses.
    dpi = layout.pixels * MM_PER_INCH
    size = (width / MM_PER_INCH, height / MM_PER_INCH)
    figure = Figure(figsize=size, dpi=dpi, facecolor=_PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    _draw_grid(axes, width, height, layout)
    if emphasis is not None:
        _draw_emphasis(axes, emphasis, span, (width, height), layout, meaning)
    millivolts = units == MILLIVOLTS
    scale = layout.scale if millivolts else _fit_scale(signal, layout.row)
    if millivolts and not narrow:
        for row in range(rows):
            _draw_pulse(axes, layout.baseline(height, row), layout)
    # [Step 3] The traces, and the scales that they are drawn to.
    signal = signal * scale
    if usual:
        _draw_usual(axes, signal, names, span / length, height)
    else:
        for row, lead in enumerate(names[:rows]):
            _draw_trace(
                axes, signal[row], span / length, 0, layout.baseline(height, row), lead, layout
            )
    notes = [
        f"{length:,} samples, rate unknown" if fs is None else f"{span * fs / length:.3g} mm/s",
        f"{scale:g} mm per unit, unit unknown" if units is None else f"{scale:g} mm/{units}",
        *([] if fs is None else [f"{fs:g} Hz"]),
        *([f"the first {rows} of {count:,} leads"] if count > _MOST_ROWS else []),
    ]
    top, bottom = height - layout.head / 2, layout.foot / 2
    text: dict[str, Any] = {"color": _INK, "va": "center"}
    if title:
        head = escape_plot_text(title)
        axes.text(layout.margin, top, head, fontsize=10, weight="bold", wrap=True, **text)
    # A narrow figure has no room for both below the traces: its scale stands above them.
    place = height - layout.head / 2 if narrow else bottom
    axes.text(
        *(width - layout.margin, place, "   ".join(notes)),
        fontsize=layout.letters - 1,
        ha="right",
        **text,
    )
    return figure


def _choose_span(length: int, fs: float | None, layout: _Layout, narrow: bool) -> float:
    """Return how many millimetres a trace is long."""
    if narrow:
        return NARROW - layout.start - layout.margin
    return _UNTIMED if fs is None else min(length / fs * MM_PER_SECOND, _LONGEST)


def _fit_scale(signal: NDArray[np.float32], row: float) -> float:
    """Return the largest usual scale, in mm per unit, at which all but the tallest peaks fit."""
    tall = float(np.quantile(np.abs(signal), 0.995)) or 1.0
    return max(
        (step * 10.0**power for power in range(-6, 5) for step in (1.0, 2.0, 5.0)),
        key=lambda scale: (scale * tall <= 0.4 * row, scale if scale * tall <= 0.4 * row else 0),
    )


def _draw_usual(
    axes: Axes, signal: NDArray[np.float32], leads: list[str], step: float, height: float
) -> None:
    length = signal.shape[1]
    for column, names in enumerate(_COLUMNS):
        start, stop = length * column // 4, length * (column + 1) // 4
        for row, lead in enumerate(names):
            part = signal[leads.index(lead), start:stop]
            y = _FULL.baseline(height, row)
            _draw_trace(axes, part, step, start, y, lead, _FULL)
            if column:
                x = _FULL.start + start * step
                axes.plot([x, x], [y - 4, y + 4], color=_INK, linewidth=0.5)
    rhythm = signal[leads.index("II")]
    _draw_trace(axes, rhythm, step, 0, _FULL.baseline(height, 3), "II", _FULL)


def _draw_trace(
    axes: Axes,
    trace: NDArray[np.float32],
    step: float,
    start: int,
    baseline: float,
    lead: str,
    layout: _Layout,
) -> None:
    """Draw samples that are ``step`` millimetres apart, beginning with sample ``start``."""
    x = layout.start + (start + np.arange(len(trace))) * step
    axes.plot(x, baseline + trace, color=_TRACE, linewidth=0.8)
    beside = layout is _PHONE
    place = (layout.margin, baseline) if beside else (x[0] + 1.0, baseline + 0.35 * layout.row)
    label = axes.text(
        *(*place, escape_plot_text(lead)),
        color=_INK,
        fontsize=layout.letters,
        va="center",
        zorder=_BELOW_TRACES,
    )
    label.set_fontweight("bold")
    label.set_bbox({"facecolor": _PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.8})


def _draw_pulse(axes: Axes, baseline: float, layout: _Layout) -> None:
    x = layout.margin + np.array([0.0, 1.5, 1.5, 6.5, 6.5, 8.0])
    y = baseline + MM_PER_MILLIVOLT * np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    axes.plot(x, y, color=_TRACE, linewidth=0.8)


def _draw_emphasis(
    axes: Axes,
    emphasis: NDArray[np.float32],
    span: float,
    size: tuple[float, float],
    layout: _Layout,
    meaning: str,
) -> None:
    """Tint the paper where the map is high, and draw the scale of the tint below the traces."""
    left, (width, height) = layout.start, size
    _draw_tint(axes, emphasis, (left, left + span), (layout.foot, height - layout.head + 1.0))
    ramp = np.linspace(0, 1, 11, dtype=np.float32)
    low, high = layout.foot / 2 - 1.5, layout.foot / 2 + 1.5
    right = layout.margin + 5 + 30
    _draw_tint(axes, ramp, (right - 30, right), (low, high))
    frame = [(right - 30, low), (right, low), (right, high), (right - 30, high), (right - 30, low)]
    axes.plot(*zip(*frame, strict=True), color=_INK, linewidth=0.5)
    text: dict[str, Any] = {"color": _INK, "fontsize": layout.letters - 1, "va": "center"}
    axes.text(right - 32, (low + high) / 2, "0", ha="right", **text)
    axes.text(right + 2, (low + high) / 2, f"1   {meaning}", **text)
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)


def _draw_tint(
    axes: Axes,
    values: NDArray[np.float32],
    across: tuple[float, float],
    along: tuple[float, float],
) -> None:
    colour = np.zeros((1, len(values), 4))
    colour[..., :3] = _TINT
    # In tenths: steps that the scale below the traces shows, too.
    colour[..., 3] = _STRONGEST * np.round(10 * np.clip(values, 0, 1)) / 10
    axes.imshow(
        colour, extent=(*across, *along), aspect="auto", interpolation="nearest", zorder=0.9
    )


def _draw_grid(axes: Axes, width: float, height: float, layout: _Layout) -> None:
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    line = POINTS_PER_INCH / (layout.pixels * MM_PER_INCH)  # one pixel
    for step, color in layout.grid:
        first = layout.start % step
        axes.vlines(np.arange(first, width, step), 0, height, color=color, linewidth=line)
        lowest = layout.baseline(height, 0) % step  # so that baselines are on lines
        axes.hlines(np.arange(lowest, height, step), 0, width, color=color, linewidth=line)
