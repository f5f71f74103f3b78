"""Figures of records that are not signals: a small image enlarged, beside its map where it has one.

`draw_record` draws a record of any kind; signals are drawn by `ecg_paper`.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.display import escape_plot_text
from seedless.report.ecg_paper import EVIDENCE, MM_PER_INCH, NARROW, draw_ecg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#44444a"
_HEADING: dict[str, Any] = {"weight": "bold", "color": _INK, "wrap": True}
# Width, height and dots per inch of a picture with a map: side by side, or for a phone one below
# the other. A page shows two dots as one of its pixels.
_WIDE, _TALL, _DPI = (8.6, 4.45), (NARROW / MM_PER_INCH, 196 / MM_PER_INCH), 203.2
# Where in the figure the record, its map, the scale and the two headings are.
_SIDE_BY_SIDE = (
    (0.01, 0.02, 0.435, 0.86),
    (0.455, 0.02, 0.435, 0.86),
    (0.905, 0.08, 0.018, 0.74),
    ((0.01, 0.915), (0.455, 0.915)),
)
_STACKED = (
    (0.03, 0.53, 0.94, 0.435),
    (0.03, 0.065, 0.94, 0.435),
    (0.15, 0.038, 0.7, 0.012),
    ((0.03, 0.972), (0.03, 0.506)),
)


def draw_record(
    sample: NDArray[Any],
    *,
    leads: Sequence[str] | None,
    fs: float | None,
    units: str | None,
    title: str = "",
    emphasis: NDArray[np.float32] | None = None,
    meaning: str = EVIDENCE,
    narrow: bool = False,
) -> Figure:
    """Draw one sample of a dataset: (leads, time) on ECG paper, anything else as an image.

    ``emphasis`` is a map from 0 to 1 of the times or pixels, and ``meaning`` the name of its
    values; ``narrow`` draws the record for the width of a phone.

    Example: ``draw_record(data.X[0], leads=data.leads, fs=data.fs, units=data.units)``.
    """
    if sample.ndim == 2:
        return draw_ecg(sample, leads, fs, title, units, emphasis, meaning=meaning, narrow=narrow)
    return draw_image(sample, title, emphasis, meaning=meaning, narrow=narrow)


def draw_image(
    image: NDArray[Any],
    title: str = "",
    emphasis: NDArray[np.float32] | None = None,
    *,
    meaning: str = EVIDENCE,
    narrow: bool = False,
) -> Figure:
    """Draw (channels, height, width) in colour with three channels, else the first one in grey.

    Values that are not uint8 are drawn from the record's lowest (black) to its highest (white).
    ``emphasis`` (height, width) from 0 to 1 is drawn as a heat map beside the image, or below it
    where the picture is ``narrow``: the pixels that matter to a prediction. ``meaning`` is what
    the scale of the map is called.
    """
    from matplotlib.figure import Figure

    if emphasis is not None:
        return _draw_explained(image, title, emphasis, meaning, narrow)
    side, head = (NARROW / MM_PER_INCH if narrow else 4.2), (0.4 if title else 0.0)
    figure = Figure(figsize=(side, side + head), dpi=_DPI, facecolor="white")
    _show_pixels(figure.add_axes((0.04, 0.03, 0.92, 0.94 * side / (side + head))), image)
    if title:
        figure.text(0.05, 0.94, escape_plot_text(title), fontsize=9, **_HEADING)
    return figure


def _draw_explained(
    image: NDArray[Any], title: str, emphasis: NDArray[np.float32], meaning: str, narrow: bool
) -> Figure:
    """Draw an image, itself in grey with the map on it, and the scale of the map's colours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_TALL if narrow else _WIDE, dpi=_DPI, facecolor="white")
    record, mapped, scale, headings = _STACKED if narrow else _SIDE_BY_SIDE
    _show_pixels(figure.add_axes(record), image)
    axes = figure.add_axes(mapped)
    _show_pixels(axes, image, grey=True)
    shown = np.clip(emphasis, 0, 1)
    axes.imshow(
        shown, cmap="inferno", vmin=0, vmax=1, alpha=0.25 + 0.55 * shown, interpolation="nearest"
    )
    bar = figure.colorbar(
        _make_colours(),
        cax=figure.add_axes(scale),
        orientation="horizontal" if narrow else "vertical",
    )
    if not narrow:  # there the heading above the map has the same words
        bar.set_label(meaning, fontsize=9, color=_INK)
    bar.set_ticks([0, 0.5, 1])
    bar.ax.tick_params(labelsize=9, labelcolor=_INK)
    texts = (escape_plot_text(title or "the record"), f"its map: {meaning}")
    for (x, y), text in zip(headings, texts, strict=True):
        figure.text(x, y, text, fontsize=10, **_HEADING)
    return figure


def _make_colours() -> Any:
    """Return the colours of a map from 0 to 1, for the scale beside it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(0, 1), "inferno")


def _show_pixels(axes: Axes, image: NDArray[Any], *, grey: bool = False) -> None:
    """Show (channels, height, width) without smoothing; ``grey``: the mean of its channels."""
    pixels = np.moveaxis(_as_bytes(image), 0, -1)
    if pixels.shape[-1] == 3 and not grey:
        axes.imshow(pixels, interpolation="nearest")
    else:
        plane = pixels.mean(axis=-1) if grey else pixels[..., 0]
        axes.imshow(plane, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.axis("off")


def _as_bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an image as uint8; other types are stretched from their lowest to their highest."""
    if image.dtype == np.uint8:
        return image
    low, high = float(image.min()), float(image.max())
    share = (image.astype(np.float64) - low) / ((high - low) or 1.0)
    pixels: NDArray[np.uint8] = np.rint(255 * share).astype(np.uint8)
    return pixels


def save_png(figure: Figure, path: Path) -> Path:
    """Write a PNG whose bytes repeat: no date, no software version."""
    from seedless.core.errors import DataError

    try:
        figure.savefig(path, format="png", metadata={"Software": None})
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def encode_png(figure: Figure, *, few_colours: bool = False) -> str:
    """Return a PNG in base64, as pages hold it; its bytes repeat.

    With ``few_colours`` it has a palette of 256: enough for a drawing on paper, and much shorter.
    """
    from PIL import Image  # matplotlib writes its PNGs with it, too

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    if few_colours:
        with Image.open(buffer) as picture:
            reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        reduced.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
