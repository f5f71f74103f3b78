"""Figures of studies. They repeat to the byte: fixed sizes, no date, no version."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.core.files import write_atomic
from seedless.studies.engine.results import Results
from seedless.studies.engine.table import Published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, DOT, MARK, STAR = "#1c2326", "#2d4f78", "#0b6655", "#b07800"


def draw_arms(
    results: Results,
    axis: str,
    published: Mapping[tuple[str, str], Published] | None = None,
    of: str | None = None,
) -> Figure:
    """Draw every run as a dot on its arm's line, with mean and SD; published means as diamonds.

    These are of the full network: beside smaller ones they would only stretch the axis.
    """
    from matplotlib.figure import Figure

    grid, signs = results.grid, set[str]()
    published = published if results.options.scale == "paper" else None
    arms = list(dict.fromkeys((point.block, point.arm) for point in grid.points))
    height = 1.3 + 0.34 * len(arms)
    figure = Figure(figsize=(8.0, height), dpi=120, facecolor="white")
    axes = figure.add_axes((0.34, 0.75 / height, 0.62, 1 - 1.15 / height))
    for place, (block, arm) in enumerate(reversed(arms)):
        scores = list(results.scores(arm, block, of=of).values())
        if scores:
            alone = len(scores) == 1
            signs.add("★ one run" if alone else "● a seed, | mean ± SD")
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
            mean = sum(scores) / len(scores)
            spread = (sum((s - mean) ** 2 for s in scores) / (len(scores) - 1)) ** 0.5
            axes.errorbar(
                mean, place, xerr=spread, color=MARK, capsize=4, marker="|", markersize=13
            )
        known = (published or {}).get((block, arm))
        if known is not None:
            axes.plot(known.mean, place, "D", markerfacecolor="none", color=INK, markersize=7)
            signs.add("◇ published")
    axes.set_yticks(range(len(arms)))
    axes.set_yticklabels([_name(results, *arm) for arm in reversed(arms)], fontsize=8)
    axes.set_ylim(-0.7, len(arms) - 0.3)
    finish(figure, axes, axis, ", ".join(sorted(signs, reverse=True)))
    return figure


def draw_classes(
    results: Results, blocks: Mapping[str, tuple[tuple[str, str], str | None]]
) -> Figure:
    """Draw every run as a dot, class by class, one arm above the other; seed-free runs starred.

    ``blocks``: a panel each, with its two arms and the block of its seed-free run.
    """
    from matplotlib.figure import Figure

    shown = {
        block: [n for n in results.classes(block) if results.scores(arms[0], block, of=n)]
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
        told = f"{block}: upper {arms[0]}, lower {arms[1]}" + (", ★ seed-free" if free else "")
        finish(figure, axes, "AUC, test (class and its positives on the left)")
        figure.text(0.985, (top - 0.1) / whole, told, fontsize=8, ha="right", va="top", color=INK)
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
            scores = list(results.scores(arm, block, of=name).values())
            axes.plot(
                scores, [place + shift] * len(scores), "o", color=colour, alpha=0.45, markersize=5
            )
            if scores:
                ends = [min(scores), max(scores)]
                axes.plot(ends, [place + shift] * 2, color=colour, linewidth=1)
        starred = results.scores(arms[1], free, of=name).values() if free else ()
        axes.plot(list(starred), [place - 0.17] * len(starred), "*", color=STAR, markersize=10)
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels([f"{name} ({positives[name]})" for name in reversed(names)], fontsize=8)
    axes.set_ylim(-0.6, max(1, len(names)) - 0.4)


def draw_lines(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]],
    across: str,
    up: str,
) -> Figure:
    """Draw named lines (x, mean, half width of a band)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.6), dpi=120, facecolor="white")
    axes = figure.add_axes((0.1, 0.13, 0.86, 0.8))
    for name, (x, mean, half) in lines.items():
        (line,) = axes.plot(x, mean, label=name, linewidth=1.6)
        low = [m - h for m, h in zip(mean, half, strict=True)]
        high = [m + h for m, h in zip(mean, half, strict=True)]
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_ylabel(up, fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    finish(figure, axes, across)
    return figure


def _name(results: Results, block: str, arm: str) -> str:
    """Return an arm's name, with what of it is missing or at chance."""
    _, failed, chance = results.count(arm, block)
    odd = [f"{n} {what}" for n, what in ((failed, "failed"), (chance, "at chance")) if n]
    name = " / ".join(part for part in (block, arm) if part)
    return f"{name} ({', '.join(odd)})" if odd else name


def finish(figure: Figure, axes: object, axis: str, legend: str = "") -> None:
    """Give a figure the house's plain look."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    axes.set_xlabel(axis, fontsize=9)
    axes.tick_params(labelsize=8, length=3)
    axes.grid(axis="x", color="#dfddd4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    if legend:
        figure.text(0.985, 0.985, legend, fontsize=8, ha="right", va="top", color=INK)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG without a word about when and by what."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_atomic(path, buffer.getvalue())
    return path
