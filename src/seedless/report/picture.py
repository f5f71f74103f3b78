"""A small image, enlarged so that its pixels can be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_image(
    image: NDArray[Any], title: str = "", emphasis: NDArray[np.float32] | None = None
) -> Figure:
    """Draw (channels, height, width), uint8, with one or three channels.

    ``emphasis`` (height, width) from 0 to 1 tints the places a prediction rests on.
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
    figure.text(0.05, 0.93, title, fontsize=8, weight="bold", color="#44444a", wrap=True)
    return figure
