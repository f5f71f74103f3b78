"""Figures of records: an ECG on ECG paper, and a small image enlarged.

ECG paper has 25 mm per second and 10 mm per millivolt, in boxes of 1 and 5 mm. The figure is drawn
to scale: printed at its own size, it can be measured with a ruler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.display import escape_plot_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MM_PER_SECOND = 25.0
MM_PER_MILLIVOLT = 10.0
_INCH = 25.4
_ROW = 27.0  # millimetres between the baselines of two rows
_MARGIN = 8.0
_PULSE = 10.0  # millimetres left empty for the calibration pulse of 1 mV and 0.2 s
_TITLE = 10.0

_PAPER, _FINE, _BOLD, _TRACE, _INK = "#fffdfb", "#f7dcd8", "#eab4ad", "#1b1b1f", "#44444a"

_TINT = (1.0, 0.66, 0.1)

# The usual printout: four columns of three leads, 2.5 s each, above one lead for the whole strip.
_COLUMNS = (("I", "II", "III"), ("aVR", "aVL", "aVF"), ("V1", "V2", "V3"), ("V4", "V5", "V6"))


def draw_ecg(
    signal: NDArray[np.float32],
    leads: Sequence[str],
    fs: float,
    title: str = "",
    millivolts: bool = True,
    emphasis: NDArray[np.float32] | None = None,
) -> Figure:
    """Draw (leads, time) as a figure.

    Twelve leads take the usual layout of 3 x 4 with a rhythm strip of lead II; any other set takes
    one row per lead. With ``millivolts=False`` the unit is unknown: the scale is then chosen so
    that the trace fits, and printed on the paper. ``emphasis`` (time,) from 0 to 1 tints the times
    that matter to a prediction.
    """
    from matplotlib.figure import Figure

    usual = set(leads) == {lead for column in _COLUMNS for lead in column}
    rows = 4 if usual else len(leads)
    seconds = signal.shape[1] / fs
    width = seconds * MM_PER_SECOND + 2 * _MARGIN + _PULSE
    height = rows * _ROW + 2 * _MARGIN + _TITLE
    figure = Figure(figsize=(width / _INCH, height / _INCH), dpi=150, facecolor=_PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    _draw_grid(axes, width, height)
    if emphasis is not None:
        _draw_emphasis(axes, emphasis, seconds, height)
    scale = MM_PER_MILLIVOLT if millivolts else _fit_scale(signal)
    if millivolts:
        for row in range(rows):
            _draw_pulse(axes, _baseline(height, row))
    signal = signal * scale
    if usual:
        _draw_usual(axes, signal, list(leads), fs, height)
    else:
        for row, lead in enumerate(leads):
            _draw_trace(axes, signal[row], fs, 0.0, _baseline(height, row), lead)
    unit = "mV" if millivolts else "unit (not mV)"
    note = f"25 mm/s   {scale:g} mm/{unit}   {fs:g} Hz"
    axes.text(
        _MARGIN,
        height - _MARGIN,
        escape_plot_text(title),
        color=_INK,
        fontsize=9,
        va="center",
        weight="bold",
    )
    axes.text(width - _MARGIN, _MARGIN / 2, note, color=_INK, fontsize=7, ha="right", va="center")
    return figure


def draw_image(
    image: NDArray[Any], title: str = "", emphasis: NDArray[np.float32] | None = None
) -> Figure:
    """Draw (channels, height, width), uint8, with one or three channels.

    ``emphasis`` (height, width) from 0 to 1 tints the pixels that matter to a prediction.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 4.6), dpi=150, facecolor="white")
    axes = figure.add_axes((0.05, 0.04, 0.9, 0.82))
    pixels = np.moveaxis(image, 0, -1)
    if pixels.shape[-1] == 1:
        axes.imshow(pixels[..., 0], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    else:
        axes.imshow(pixels, interpolation="nearest")
    if emphasis is not None:
        colour = np.zeros((*emphasis.shape, 4))
        colour[..., :3] = (1.0, 0.55, 0.0)
        colour[..., 3] = 0.6 * np.clip(emphasis, 0, 1)
        axes.imshow(colour, interpolation="nearest")
    axes.axis("off")
    figure.text(
        0.05, 0.93, escape_plot_text(title), fontsize=8, weight="bold", color="#44444a", wrap=True
    )
    return figure


def save_png(figure: Figure, path: Path) -> Path:
    """Write a PNG whose bytes repeat: no date, no software version."""
    from seedless.core.errors import DataError

    try:
        figure.savefig(path, format="png", metadata={"Software": None})
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def _fit_scale(signal: NDArray[np.float32]) -> float:
    """Return the largest usual scale, in mm per unit, at which all but the tallest peaks fit."""
    tall = float(np.quantile(np.abs(signal), 0.995)) or 1.0
    return max(
        (step * 10.0**power for power in range(-6, 5) for step in (1.0, 2.0, 5.0)),
        key=lambda scale: (scale * tall <= 0.4 * _ROW, scale if scale * tall <= 0.4 * _ROW else 0),
    )


def _baseline(height: float, row: int) -> float:
    return height - _MARGIN - _TITLE - (row + 0.5) * _ROW


def _draw_usual(
    axes: Axes, signal: NDArray[np.float32], leads: list[str], fs: float, height: float
) -> None:
    length = signal.shape[1]
    for column, names in enumerate(_COLUMNS):
        start, stop = length * column // 4, length * (column + 1) // 4
        for row, lead in enumerate(names):
            part = signal[leads.index(lead), start:stop]
            _draw_trace(axes, part, fs, start / fs, _baseline(height, row), lead)
            if column:
                x = _MARGIN + _PULSE + start / fs * MM_PER_SECOND
                y = _baseline(height, row)
                axes.plot([x, x], [y - 4, y + 4], color=_INK, linewidth=0.5)
    _draw_trace(axes, signal[leads.index("II")], fs, 0.0, _baseline(height, 3), "II")


def _draw_trace(
    axes: Axes, trace: NDArray[np.float32], fs: float, start: float, baseline: float, lead: str
) -> None:
    x = _MARGIN + _PULSE + (start + np.arange(len(trace)) / fs) * MM_PER_SECOND
    axes.plot(x, baseline + trace, color=_TRACE, linewidth=0.8)
    label = axes.text(
        x[0] + 1.0, baseline + 9.5, escape_plot_text(lead), color=_INK, fontsize=7.5, va="center"
    )
    label.set_fontweight("bold")
    label.set_bbox({"facecolor": _PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.8})


def _draw_pulse(axes: Axes, baseline: float) -> None:
    x = _MARGIN + np.array([0.0, 1.5, 1.5, 6.5, 6.5, 8.0])
    y = baseline + MM_PER_MILLIVOLT * np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    axes.plot(x, y, color=_TRACE, linewidth=0.8)


def _draw_emphasis(
    axes: Axes, emphasis: NDArray[np.float32], seconds: float, height: float
) -> None:
    """Tint the paper where the map is high."""
    colour = np.zeros((1, len(emphasis), 4))
    colour[..., :3] = _TINT
    colour[..., 3] = 0.55 * np.clip(emphasis, 0, 1)
    left = _MARGIN + _PULSE
    right = left + seconds * MM_PER_SECOND
    bottom, top = _MARGIN, height - _MARGIN - _TITLE / 2
    axes.imshow(
        colour,
        extent=(left, right, bottom, top),
        aspect="auto",
        interpolation="nearest",
        zorder=0.9,
    )
    axes.set_xlim(0, right + _MARGIN)
    axes.set_ylim(0, height)


def _draw_grid(axes: Axes, width: float, height: float) -> None:
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    for step, color, line in ((1.0, _FINE, 0.35), (5.0, _BOLD, 0.6)):
        axes.vlines(np.arange(_MARGIN % step, width, step), 0, height, color=color, linewidth=line)
        axes.hlines(np.arange(0, height, step), 0, width, color=color, linewidth=line)
