"""What the bases promise before any training: no runs, closed forms, and the records themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seedless.studies.engine.grid import Grid, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table
from seedless.studies.shared import basis_theory as theory
from seedless.studies.shared.basis_theory import (
    BAND,
    BRANCHES,
    DRAWS,
    FILTERS,
    RHOS,
    SIZE,
    SIZES,
    Measure,
    SampleEnergy,
)
from seedless.studies.shared.basis_theory_figure import draw_theory
from seedless.studies.shared.published_theory_tables import tabulate_claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def make(_: StudyOptions) -> Grid:
    """Return a grid without runs."""
    return make_grid("theory", (), ())


def measure(results: Results) -> SampleEnergy:
    """Return how much of the records' energy the first rows of each basis hold."""
    return theory.find_sample_energy(results.options.ecg().data)


def tabulate(results: Results) -> list[Table]:
    """Return a table for each claim."""
    return [
        _tabulate_rhos(
            f"Energy in the first {FILTERS} of {SIZE} rows, AR(1) signal",
            theory.find_energy,
            "{:.3f}",
            f"A random orthonormal basis keeps M/N = {FILTERS / SIZE:g} whatever the signal. "
            "Rows are taken as layers take them: Hadamard's and Hartley's not by frequency.",
        ),
        _tabulate_samples(results.measured, results.options.simulated),
        _tabulate_conditions(),
        _tabulate_rhos(
            f"Mutual information in nats, M = {FILTERS}, N = {SIZE}, 10 dB",
            theory.find_information,
            "{:.2f}",
            "Every row has norm 1, so that no filter is louder; random ones: median of "
            f"{DRAWS} draws.",
            orthonormal=False,
        ),
        _tabulate_rhos(
            "Energy of C S C^T beside its diagonal",
            theory.spread_off_diagonal,
            "{:.4f}",
            "0: the basis decorrelates the signal.",
        ),
        _tabulate_scales(),
        *tabulate_claims(),
    ]


def _tabulate_rhos(
    title: str, measure: Measure, style: str, note: str, *, orthonormal: bool = True
) -> Table:
    measured = {rho: theory.measure_bases(rho, measure, orthonormal=orthonormal) for rho in RHOS}
    names = list(measured[RHOS[0]])
    rows = [(name, *(style.format(measured[rho][name]) for rho in RHOS)) for name in names]
    values = [
        {"basis": name, "rho": rho, "value": measured[rho][name]} for name in names for rho in RHOS
    ]
    columns = ("", *(f"rho {rho:g}" for rho in RHOS))
    return Table(title, columns, tuple(rows), (note,), tuple(values))


def _tabulate_samples(energy: SampleEnergy, simulated: bool) -> Table:
    rows, values = [], []
    for key, curve in energy.curves.items():
        share = float(curve[int(np.ceil(BAND * len(curve))) - 1])
        rows.append((key, f"{100 * share:.2f} %", "> 99 %" if key == "dct" else ""))
        values.append({"basis": key, "share": share, "records": energy.records})
    notes = (
        f"{energy.records} records of {energy.data}, each lead's mean taken off.",
        *(("These records are simulated: --data takes real ones.",) if simulated else ()),
    )
    title = f"Energy of ECGs in the first {BAND:g} N coefficients"
    return Table(title, ("", "kept", "published"), tuple(rows), notes, tuple(values))


def _tabulate_conditions() -> Table:
    conditions = {size: theory.find_conditions(size) for size in SIZES}
    names = list(conditions[SIZES[0]])
    shown = (5, 12, 60, 64, 160, 256, 320)
    rows = [(name, *(_show(conditions[size][name]) for size in shown)) for name in names]
    values = [
        {"basis": name, "size": s, "value": conditions[s][name]} for name in names for s in SIZES
    ]
    note = (
        "Hadamard's matrix is cut where N is no power of two, and then no longer orthogonal. "
        f"Gaussian: median of {DRAWS} draws."
    )
    columns = ("", *(f"N {size}" for size in shown))
    return Table("Condition number", columns, tuple(rows), (note,), tuple(values))


def _show(value: float | None) -> str:
    return "singular" if value is None else f"{value:.3g}" if value < 1e4 else f"{value:.1e}"


def _tabulate_scales() -> Table:
    rows, values = [], []
    published = {"conformer": "0.03, 0.42 (L = 33)"}
    for model, (_, layers) in BRANCHES.items():
        count = theory.count_branches(model)
        flat, fixup = theory.bound_scales(count, layers)
        shown = "undefined" if fixup is None else f"{fixup:.3f}"
        known = published.get(model, "")
        rows.append((model, str(count), str(layers), f"{flat:.4f}", shown, known))
        values.append(
            {"model": model, "branches": count, "layers": layers, "bounds": [flat, fixup]}
        )
    notes = (
        "L counts the conformer's bottlenecks. The published 33 has its three conformer blocks as "
        "well, whose exits are scaled too.",
        "The recipe's 0.01 lies below both bounds.",
    )
    columns = ("model", "L branches", "m layers", "1/L", "L^(-1/(2m-2))", "published")
    return Table(
        "Bounds on the scale of residual exits", columns, tuple(rows), notes, tuple(values)
    )


def draw(results: Results) -> Figure:
    """Return a panel for each claim."""
    return draw_theory(results.measured)


STUDY = Study(
    "theory",
    "What do the bases promise before any training: energy, conditioning, information, scale?",
    make,
    tabulate,
    draw,
    measure=measure,
)
