"""What the bases promise before any training: no runs, closed forms, and the records themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from seedless.core.config import DataConfig
from seedless.core.errors import StudyError
from seedless.data.loading import load
from seedless.init.bases import BASES, basis
from seedless.models import baseline, build, conformer, resnet18, xresnet1d
from seedless.studies.engine.grid import Grid, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table
from seedless.studies.protocols import basis_theory
from seedless.studies.protocols.basis_theory import Float64

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 64  # N
FILTERS = SIZE // 4  # M
NOISE = 0.1  # 10 dB below a signal of unit variance
BAND = 0.8  # of the coefficients: 40 Hz of the 50 that 100 samples a second hold
RHO = 0.95
RHOS = (0.0, 0.3, 0.6, 0.9, 0.95, 0.99)
SIZES = (4, 5, 8, 12, 16, 32, 40, 60, 64, 100, 128, 160, 200, 256, 320)  # powers of 2, layers
DRAWS = 9  # random matrices of which the median is shown
KLT, ORTHONORMAL, GAUSSIAN = "KLT (bound)", "random orthonormal", "Gaussian"
# What a residual branch is in each model, and how many layers it has.
BRANCHES: dict[str, tuple[type[nn.Module], int]] = {
    "conformer": (conformer.Bottleneck, 3),
    "baseline": (baseline.Block, 1),
    "xresnet1d101": (xresnet1d.Bottleneck, 3),
    "resnet18": (resnet18.BasicBlock, 2),
}
Measure = Callable[[Float64, Float64], float]


def make(_: StudyOptions) -> Grid:
    """Return a grid without runs."""
    return make_grid("theory", (), ())


def list_matrices(rho: float, *, orthonormal: bool = True) -> dict[str, list[Float64]]:
    """Return every basis of size N, random ones several times, and the best for this signal."""
    found = {
        name: list(matrices)
        for name, matrices in _list_fixed().items()
        if not (orthonormal and name == GAUSSIAN)
    }
    return {**found, KLT: [basis_theory.find_klt(basis_theory.covariance(SIZE, rho))]}


@lru_cache(maxsize=1)
def _list_fixed() -> dict[str, tuple[Float64, ...]]:
    return {
        **{name: (basis(name, SIZE),) for name in BASES},
        ORTHONORMAL: tuple(basis_theory.draw_orthonormal(SIZE, seed) for seed in range(DRAWS)),
        GAUSSIAN: tuple(basis_theory.draw_gaussian(SIZE, SIZE, seed) for seed in range(DRAWS)),
    }


def measure(rho: float, how: Measure, *, orthonormal: bool = True) -> dict[str, float]:
    """Return what a measure of (matrix, S) says of each matrix; the median over draws."""
    signal = basis_theory.covariance(SIZE, rho)
    return {
        name: float(np.median([how(matrix, signal) for matrix in matrices]))
        for name, matrices in list_matrices(rho, orthonormal=orthonormal).items()
    }


def find_energy(matrix: Float64, signal: Float64) -> float:
    """Return the share of energy in the first M rows."""
    return float(basis_theory.keep_energy(matrix, signal)[FILTERS - 1])


def find_information(matrix: Float64, signal: Float64) -> float:
    """Return the information in the first M rows."""
    return basis_theory.information(matrix[:FILTERS], signal, NOISE)


@lru_cache(maxsize=64)
def find_conditions(size: int) -> dict[str, float | None]:
    """Return the condition number of each basis of a size, and the median of Gaussian ones."""
    found = {name: basis_theory.condition(basis(name, size)) for name in BASES}
    drawn = [
        basis_theory.condition(basis_theory.draw_gaussian(size, size, seed))
        for seed in range(DRAWS)
    ]
    known = [value for value in drawn if value is not None]
    return {**found, GAUSSIAN: float(np.median(known)) if known else None}


def find_sample_energy(data: DataConfig) -> tuple[str, int, dict[str, Float64]]:
    """Return the data's name, how many records, and the energy of each basis' first rows."""
    return _read_energy(data.model_dump_json())


@lru_cache(maxsize=2)
def _read_energy(text: str) -> tuple[str, int, dict[str, Float64]]:
    data = load(DataConfig.model_validate_json(text))
    if data.X.ndim != 3:
        raise StudyError(f"theory looks at recordings (leads, time); {data.name} holds images")
    size, moment = data.X.shape[-1], basis_theory.find_moment(data.X)
    curves = {name: basis_theory.keep_energy(basis(name, size), moment) for name in BASES}
    return data.name, len(data), curves


def count_branches(model: str) -> int:
    """Return how many residual branches a model has."""
    kind, _ = BRANCHES[model]
    return sum(isinstance(module, kind) for module in build(model).modules())


def tabulate(results: Results) -> list[Table]:
    """Return a table for each claim."""
    return [
        _tabulate_rhos(
            f"Energy in the first {FILTERS} of {SIZE} rows, AR(1) signal",
            find_energy,
            "{:.3f}",
            f"A random orthonormal basis keeps M/N = {FILTERS / SIZE:g} whatever the signal. "
            "Rows are taken as layers take them: Hadamard's and Hartley's not by frequency.",
        ),
        _tabulate_samples(results.options),
        _tabulate_conditions(),
        _tabulate_rhos(
            f"Mutual information in nats, M = {FILTERS}, N = {SIZE}, 10 dB",
            find_information,
            "{:.2f}",
            "Every row has norm 1, so that no filter is louder; random ones: median of "
            f"{DRAWS} draws.",
            orthonormal=False,
        ),
        _tabulate_rhos(
            "Energy of C S C^T beside its diagonal",
            basis_theory.spread_off_diagonal,
            "{:.4f}",
            "0: the basis decorrelates the signal.",
        ),
        _tabulate_scales(),
    ]


def _tabulate_rhos(
    title: str, how: Measure, style: str, note: str, *, orthonormal: bool = True
) -> Table:
    found = {rho: measure(rho, how, orthonormal=orthonormal) for rho in RHOS}
    names = list(found[RHOS[0]])
    rows = [(name, *(style.format(found[rho][name]) for rho in RHOS)) for name in names]
    values = [
        {"basis": name, "rho": rho, "value": found[rho][name]} for name in names for rho in RHOS
    ]
    columns = ("", *(f"rho {rho:g}" for rho in RHOS))
    return Table(title, columns, tuple(rows), (note,), tuple(values))


def _tabulate_samples(options: StudyOptions) -> Table:
    name, records, curves = find_sample_energy(options.ecg().data)
    rows, values = [], []
    for key, curve in curves.items():
        kept = float(curve[int(np.ceil(BAND * len(curve))) - 1])
        rows.append((key, f"{100 * kept:.2f} %", "> 99 %" if key == "dct" else ""))
        values.append({"basis": key, "share": kept, "records": records})
    notes = (
        f"{records} records of {name}, each lead's mean taken off.",
        *(("These records are simulated: --data takes real ones.",) if options.simulated else ()),
    )
    title = f"Energy of ECGs in the first {BAND:g} N coefficients"
    return Table(title, ("", "kept", "published"), tuple(rows), notes, tuple(values))


def _tabulate_conditions() -> Table:
    found = {size: find_conditions(size) for size in SIZES}
    names = list(found[SIZES[0]])
    shown = (5, 12, 60, 64, 160, 256, 320)
    rows = [(name, *(_show(found[size][name]) for size in shown)) for name in names]
    values = [{"basis": name, "size": s, "value": found[s][name]} for name in names for s in SIZES]
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
        count = count_branches(model)
        flat, fixup = basis_theory.bound_scales(count, layers)
        shown = "undefined" if fixup is None else f"{fixup:.3f}"
        told = published.get(model, "")
        rows.append((model, str(count), str(layers), f"{flat:.4f}", shown, told))
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
    from seedless.studies.protocols.basis_theory_figure import draw_theory

    return draw_theory(results.options)


STUDY = Study(
    "theory",
    "What do the bases promise before any training: energy, conditioning, information, scale?",
    make,
    tabulate,
    draw,
)
