"""Figures of studies. Equal results give equal bytes: fixed sizes, no date, no version."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from seedless.core.display import escape_plot_text
from seedless.studies.engine.arm_tables import name_arm
from seedless.studies.engine.results import Results
from seedless.studies.engine.table import Published, mean_and_sd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: of a letter of a label, and of what is left and right of the axis of a figure of arms.
LETTER, LEAST_LEFT, RIGHT = 0.068, 2.7, 5.3
INK, DOT, MARK, STAR = "#1c2326", "#2d4f78", "#0b6655", "#b07800"


def draw_arms(
    results: Results,
    axis: str,
    published: Mapping[tuple[str, str], Published] | None = None,
) -> Figure:
    """Draw every run as a dot on the line of its arm, mean and SD, and published means as diamonds.

    Published means are drawn only where data, networks and training are the published ones.
    """

    grid, signs = results.grid, set[str]()
    published = published if results.options.as_published else None
    arms = grid.arms_by_block
    height = 1.3 + 0.34 * len(arms)
    labels = [_label_arm(results, *arm) for arm in reversed(arms)]
    left = max(LEAST_LEFT, LETTER * max(map(len, labels), default=0))
    width = left + RIGHT
    place_in_figure = (left / width, 0.75 / height, (RIGHT - 0.3) / width, 1 - 1.15 / height)
    figure, axes = make_axes(width, height, place_in_figure)
    for place, (block, arm) in enumerate(reversed(arms)):
        scores = list(results.scores(arm, block).values())
        if scores:
            alone = len(scores) == 1
            signs.add("★ one run" if alone else "● a replicate, | mean ± SD")
            axes.plot(
                scores,
                [place] * len(scores),
                "*" if alone else "o",
                color=STAR if alone else DOT,
                alpha=1.0 if alone else 0.55,
                markersize=11 if alone else 6,
                markeredgewidth=0,
            )
        if len(scores) > 1:
            mean, sd = mean_and_sd(scores)
            axes.errorbar(mean, place, xerr=sd, color=MARK, capsize=4, marker="|", markersize=13)
        known = (published or {}).get((block, arm))
        if known is not None:
            axes.plot(known.mean, place, "D", markerfacecolor="none", color=INK, markersize=7)
            signs.add("◇ published")
    axes.set_yticks(range(len(arms)))
    axes.set_yticklabels(labels, fontsize=8)
    axes.set_ylim(-0.7, len(arms) - 0.3)
    style_axes(figure, axes, axis, ", ".join(sorted(signs, reverse=True)))
    return figure


def make_draw(
    published: Mapping[tuple[str, str], Published], axis: str = "Test macro AUC"
) -> Callable[[Results], Figure]:
    """Return the `draw` of a study whose figure shows its arms with the published means."""
    return partial(draw_arms, axis=axis, published=published)


def draw_classes(
    results: Results, blocks: Mapping[str, tuple[tuple[str, str], str | None]]
) -> Figure:
    """Draw the AUC of every run as a dot, one line per class and arm; seed-free runs as stars.

    ``blocks``: one panel each, with its two arms and the block of its seed-free run, if any.
    """
    from matplotlib.figure import Figure

    shown = {
        block: [n for n in results.classes(block) if results.scores(arms[0], block, class_name=n)]
        for block, (arms, _) in blocks.items()
    }
    heights = [1.3 + 0.5 * max(1, len(names)) for names in shown.values()]
    whole = sum(heights)
    figure = Figure(figsize=(8.0, whole), dpi=120, facecolor="white")
    top = whole
    for (block, (arms, free)), height in zip(blocks.items(), heights, strict=True):
        bottom = (top - height + 0.7) / whole
        axes = figure.add_axes((0.24, bottom, 0.72, (height - 1.2) / whole))
        _draw_panel(axes, results, block, shown[block], arms, free)
        text = f"{block}: upper {arms[0]}, lower {arms[1]}" + (", ★ seed-free" if free else "")
        style_axes(figure, axes, "AUC, test (class and its positives on the left)")
        figure.text(
            0.985,
            (top - 0.1) / whole,
            escape_plot_text(text),
            fontsize=8,
            ha="right",
            va="top",
            color=INK,
        )
        top -= height
    return figure


def _draw_panel(
    axes: Axes,
    results: Results,
    block: str,
    names: Sequence[str],
    arms: tuple[str, str],
    free: str | None,
) -> None:
    """Draw the classes of one block."""
    positives = results.classes(block)
    for place, name in enumerate(reversed(names)):
        for shift, arm, colour in ((0.17, arms[0], "#ae1f17"), (-0.17, arms[1], MARK)):
            scores = list(results.scores(arm, block, class_name=name).values())
            axes.plot(
                scores, [place + shift] * len(scores), "o", color=colour, alpha=0.45, markersize=5
            )
            if scores:
                ends = [min(scores), max(scores)]
                axes.plot(ends, [place + shift] * 2, color=colour, linewidth=1)
        starred = results.scores(arms[1], free, class_name=name).values() if free else ()
        axes.plot(list(starred), [place - 0.17] * len(starred), "*", color=STAR, markersize=10)
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels(
        [escape_plot_text(f"{name} ({positives[name]})") for name in reversed(names)], fontsize=8
    )
    axes.set_ylim(-0.6, max(1, len(names)) - 0.4)


def draw_lines(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]],
    across: str,
    up: str,
) -> Figure:
    """Draw lines by name, each (x, mean, half width of the band around it)."""

    figure, axes = make_axes(8.0, 4.6, (0.1, 0.13, 0.86, 0.8))
    for name, (x, mean, half) in lines.items():
        (line,) = axes.plot(x, mean, label=escape_plot_text(name), linewidth=1.6)
        low = [m - h for m, h in zip(mean, half, strict=True)]
        high = [m + h for m, h in zip(mean, half, strict=True)]
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_ylabel(up, fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    style_axes(figure, axes, across)
    return figure


def _label_arm(results: Results, block: str, arm: str) -> str:
    """Return the name of an arm with the number of its runs that failed or ended at chance."""
    _, failed, chance = results.count(arm, block)
    odd = [f"{n} {what}" for n, what in ((failed, "failed"), (chance, "at chance")) if n]
    name = name_arm(block, arm)
    return f"{name} ({', '.join(odd)})" if odd else name


def make_axes(
    width: float, height: float, box: tuple[float, float, float, float]
) -> tuple[Figure, Axes]:
    """Return a figure of a size in inches with axes in a box (left, bottom, width, height)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, facecolor="white")
    return figure, figure.add_axes(box)


def style_axes(figure: Figure, axes: Axes, axis: str, legend: str = "") -> None:
    """Set the style that all figures have, an axis label and a legend line."""
    axes.set_xlabel(axis, fontsize=9)
    axes.tick_params(labelsize=8, length=3)
    axes.grid(axis="x", color="#dfddd4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    if legend:
        figure.text(0.985, 0.985, legend, fontsize=8, ha="right", va="top", color=INK)


def encode_png(figure: Figure) -> bytes:
    """Return a figure as PNG, without the date and the version that matplotlib would add."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
