"""The figure of the study `theory`: one panel per claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seedless.init.bases import basis
from seedless.studies.engine.figures import INK
from seedless.studies.shared import basis_theory as theory
from seedless.studies.shared.basis_theory import SampleEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {
    "hadamard": ("#b07800", "-", 1.3),
    "hartley": ("#2d4f78", "-", 1.3),
    "walsh": ("#1f9bb3", "--", 1.3),
    "sinusoidal": ("#c79bd6", "-", 3.2),  # wide, because the curve of the DCT often covers it
    "dct": ("#0b6655", "-", 1.8),
    theory.ORTHONORMAL: ("#7d858a", "-", 1.3),
    theory.GAUSSIAN: ("#ae1f17", "-", 1.3),
    theory.KLT: (INK, ":", 1.8),
}
RHOS = tuple(float(rho) for rho in np.linspace(0, 0.99, 23))
DEPTHS = tuple(range(2, 101))


def draw_theory(sample_energy: SampleEnergy) -> Figure:
    """Return two rows of panels, with one legend for all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14.0, 7.2), dpi=120, facecolor="white")
    panels = figure.subplots(2, 4)
    figure.subplots_adjust(0.045, 0.075, 0.985, 0.95, wspace=0.3, hspace=0.33)
    (picture, energy, samples, conditions), (facts, diagonal, scales, legend) = panels
    _draw_picture(figure, picture)
    _draw_energy(energy)
    _draw_samples(samples, sample_energy)
    _draw_conditions(conditions)
    nats = [theory.measure_bases(rho, theory.find_information, orthonormal=False) for rho in RHOS]
    _draw_lines(facts, RHOS, _transpose(nats))
    _label(facts, "e", f"information, first {theory.FILTERS} rows, 10 dB", "rho", "nats")
    shares = [theory.measure_bases(rho, theory.spread_off_diagonal) for rho in RHOS]
    _draw_lines(diagonal, RHOS, _transpose(shares))
    _label(diagonal, "f", "energy beside the diagonal of C S Cᵀ", "rho", "share")
    _draw_scales(scales)
    legend.axis("off")
    for name, (colour, line, width) in STYLES.items():
        legend.plot([], [], line, color=colour, linewidth=width, label=name)
    legend.legend(loc="center left", fontsize=10, frameon=False, handlelength=2.6)
    return figure


def _draw_picture(figure: Figure, axes: Axes) -> None:
    size = theory.SIZE
    matrix = basis("dct", size)
    bound = float(np.abs(matrix).max())
    shown = axes.imshow(matrix, cmap="RdBu_r", vmin=-bound, vmax=bound, interpolation="nearest")
    figure.colorbar(shown, ax=axes, fraction=0.043, pad=0.02).ax.tick_params(labelsize=7)
    _label(axes, "a", f"the DCT basis, N = {size}", "sample", "row")
    axes.grid(visible=False)


def _draw_energy(axes: Axes) -> None:
    signal = theory.covariance(theory.SIZE, theory.RHO)
    lines = {
        name: np.median([theory.energy_shares(matrix, signal) for matrix in matrices], axis=0)
        for name, matrices in theory.list_matrices(theory.RHO).items()
    }
    rows = range(1, theory.SIZE + 1)
    _draw_lines(axes, rows, {name: line.tolist() for name, line in lines.items()})
    _label(axes, "b", f"energy kept, AR(1), rho = {theory.RHO:g}", "first M rows", "share")


def _draw_samples(axes: Axes, energy: SampleEnergy) -> None:
    size = len(next(iter(energy.curves.values())))
    shares = [(row + 1) / size for row in range(size)]
    _draw_lines(axes, shares, {key: curve.tolist() for key, curve in energy.curves.items()})
    axes.axvline(theory.BAND, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    _label(axes, "c", f"energy kept, {energy.records} ECGs", "share of N coefficients", "share")


def _draw_conditions(axes: Axes) -> None:
    conditions = [theory.find_conditions(size) for size in theory.SIZES]
    lines = {
        name: [np.nan if one[name] is None else float(one[name] or 0) for one in conditions]
        for name in conditions[0]
    }
    _draw_lines(axes, theory.SIZES, lines, marker=".")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.7, None)
    _label(axes, "d", "condition number", "N", "largest / smallest singular value")


def _draw_scales(axes: Axes) -> None:
    bounds = [("1/L", 0, 3, "#0b6655"), ("L^(-1/4), m = 3", 1, 3, "#ae1f17")]
    bounds.append(("L^(-1/2), m = 2", 1, 2, "#b07800"))
    for label, place, layers, colour in bounds:
        line = [theory.bound_scales(depth, layers)[place] for depth in DEPTHS]
        axes.plot(DEPTHS, [value or np.nan for value in line], color=colour, label=label)
    axes.axhline(0.01, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), label="recipe, 0.01")
    for model in ("conformer", "resnet18"):
        count, layers = theory.count_branches(model), theory.BRANCHES[model][1]
        ends = [value for value in theory.bound_scales(count, layers) if value is not None]
        axes.plot([count] * len(ends), ends, "o", color=INK, markersize=4)
        axes.annotate(model, (count, ends[0]), (4, 3), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 0.06))
    _label(axes, "g", "bounds on the scale of residual exits", "L residual branches", "scale")


def _draw_lines(
    axes: Axes,
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    marker: str = "",
) -> None:
    for name, (colour, style, width) in STYLES.items():
        if name not in lines:
            continue
        axes.plot(x, lines[name], style, color=colour, linewidth=width, marker=marker)


def _transpose(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [one[name] for one in rows] for name in rows[0]}


def _label(axes: Axes, letter: str, title: str, across: str, up: str) -> None:
    axes.set_title(f"({letter}) {title}", fontsize=9, loc="left", color=INK)
    axes.set_xlabel(across, fontsize=8)
    axes.set_ylabel(up, fontsize=8)
    axes.tick_params(labelsize=7, length=3)
    axes.grid(color="#dfddd4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
