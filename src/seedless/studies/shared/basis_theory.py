"""Properties of the bases before any training, in closed form.

S is the covariance of a signal of N samples, W a linear layer of M filters: (M, N).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import nn

from seedless.core.config import DataConfig
from seedless.core.errors import StudyError
from seedless.data.loading import load
from seedless.init.bases import BASES, basis
from seedless.init.layer_weights import normal_weights
from seedless.models import baseline, build, conformer, resnet18, xresnet1d

Float64 = NDArray[np.float64]
BLOCK = 256  # records at a time
SIZE = 64  # N
FILTERS = SIZE // 4  # M
NOISE = 0.1  # 10 dB below a signal of unit variance
BAND = 0.8  # of the coefficients: 40 of the 50 Hz that 100 samples per second can represent
RHO = 0.95
RHOS = (0.0, 0.3, 0.6, 0.9, 0.95, 0.99)
SIZES = (4, 5, 8, 12, 16, 32, 40, 60, 64, 100, 128, 160, 200, 256, 320)  # powers of 2, layers
DRAWS = 9  # random matrices; their median is shown
KLT, ORTHONORMAL, GAUSSIAN = "KLT (bound)", "random orthonormal", "Gaussian"
# The module that is a residual branch of each model, and how many layers it has.
BRANCHES: dict[str, tuple[type[nn.Module], int]] = {
    "conformer": (conformer.Bottleneck, 3),
    "baseline": (baseline.Block, 1),
    "xresnet1d101": (xresnet1d.Bottleneck, 3),
    "resnet18": (resnet18.BasicBlock, 2),
}
Measure = Callable[[Float64, Float64], float]


@dataclass(frozen=True)
class SampleEnergy:
    """How much of the energy of a dataset's records the first rows of each basis hold."""

    data: str
    records: int
    curves: dict[str, Float64]


def covariance(size: int, rho: float) -> Float64:
    """Return S of an AR(1) signal of unit variance: rho^|i-j|, (size, size)."""
    if not -1 < rho < 1:
        raise StudyError(f"expected a correlation between -1 and 1, got {rho!r}")
    steps = np.arange(size)
    covariances: Float64 = np.power(float(rho), np.abs(steps[:, None] - steps[None, :]))
    return covariances


def draw_gaussian(rows: int, columns: int, seed: int = 0) -> Float64:
    """Return He's normal weights (rows, columns), a function of the seed and the shape alone."""
    return normal_weights((rows, columns), columns, (seed, f"gaussian {rows} x {columns}"))


def draw_orthonormal(size: int, seed: int = 0) -> Float64:
    """Return a random orthonormal matrix (size, size): QR of a Gaussian one, R's diagonal > 0."""
    q, r = np.linalg.qr(draw_gaussian(size, size, seed))
    rows: Float64 = (q * np.sign(np.diagonal(r))).T
    return rows


def find_klt(signal: Float64) -> Float64:
    """Return the eigenvectors of S as rows, largest eigenvalue first: the best basis for S."""
    _, vectors = np.linalg.eigh(signal)
    rows: Float64 = vectors.T[::-1]
    return rows


def energy_shares(basis: Float64, signal: Float64) -> Float64:
    """Return the share of a signal's energy in the first 1, 2, ... N rows of a basis.

    sum_{i<M} w_i S w_i^T / tr S.
    """
    rows = ((basis @ signal) * basis).sum(axis=1)
    shares: Float64 = np.cumsum(rows) / np.trace(signal)
    return shares


def find_moment(samples: NDArray[np.float32]) -> Float64:
    """Return the second moment (N, N) of samples (n, leads, N) after subtracting each lead's mean.

    It takes the place of S for measured signals: their energy depends on nothing else. Records are
    read in blocks, since they may be in a file larger than memory.
    """
    size = samples.shape[-1]
    moment = np.zeros((size, size))
    for start in range(0, len(samples), BLOCK):
        lines = samples[start : start + BLOCK].reshape(-1, size).astype(np.float64)
        lines -= lines.mean(axis=1, keepdims=True)
        moment += lines.T @ lines
    return moment


def condition(weights: Float64) -> float | None:
    """Return the condition number, largest over smallest singular value; None if singular."""
    values = np.linalg.svd(weights, compute_uv=False)
    return None if values[-1] <= values[0] * 1e-12 else float(values[0] / values[-1])


def information(weights: Float64, signal: Float64, noise: float) -> float:
    """Return 1/2 log det(I + W S W^T / s^2) in nats, each row of W scaled to norm 1.

    With rows of equal norm, filters differ in shape and not in gain. ``noise`` is s^2.
    """
    if noise <= 0:
        raise StudyError(f"expected noise of a variance above 0, got {noise!r}")
    rows = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    _, value = np.linalg.slogdet(np.eye(len(rows)) + rows @ signal @ rows.T / noise)
    return float(value) / 2


def spread_off_diagonal(basis: Float64, signal: Float64) -> float:
    """Return the share of ||C S C^T||^2 off the diagonal: 0 where C decorrelates the signal."""
    product = basis @ signal @ basis.T
    outside = product - np.diag(np.diagonal(product))
    return float((outside * outside).sum() / (product * product).sum())


def bound_scales(branches: int, layers: int) -> tuple[float, float | None]:
    """Return the scales of residual exits that keep L branches of m layers bounded.

    1/L where a branch does not amplify, as an orthonormal one; L^(-1/(2m-2)) for random weights
    (Fixup), None where m = 1 leaves it undefined.
    """
    if branches < 1 or layers < 1:
        raise StudyError(f"expected branches and layers of at least 1, got {branches}, {layers}")
    fixup = None if layers == 1 else math.pow(branches, -1 / (2 * layers - 2))
    return 1 / branches, fixup


def list_matrices(rho: float, *, orthonormal: bool = True) -> dict[str, list[Float64]]:
    """Return every basis of size N, several random ones, and the best one for this signal."""
    fixed = {
        name: list(matrices)
        for name, matrices in _list_fixed().items()
        if not (orthonormal and name == GAUSSIAN)
    }
    return {**fixed, KLT: [find_klt(covariance(SIZE, rho))]}


@lru_cache(maxsize=1)
def _list_fixed() -> dict[str, tuple[Float64, ...]]:
    return {
        **{name: (basis(name, SIZE),) for name in BASES},
        ORTHONORMAL: tuple(draw_orthonormal(SIZE, seed) for seed in range(DRAWS)),
        GAUSSIAN: tuple(draw_gaussian(SIZE, SIZE, seed) for seed in range(DRAWS)),
    }


def measure_bases(rho: float, how: Measure, *, orthonormal: bool = True) -> dict[str, float]:
    """Return a measure of (matrix, S) for each basis; the median over random ones."""
    signal = covariance(SIZE, rho)
    return {
        name: float(np.median([how(matrix, signal) for matrix in matrices]))
        for name, matrices in list_matrices(rho, orthonormal=orthonormal).items()
    }


def find_energy(matrix: Float64, signal: Float64) -> float:
    """Return the share of energy in the first M rows."""
    return float(energy_shares(matrix, signal)[FILTERS - 1])


def find_information(matrix: Float64, signal: Float64) -> float:
    """Return the information in the first M rows."""
    return information(matrix[:FILTERS], signal, NOISE)


@lru_cache(maxsize=64)
def find_conditions(size: int) -> dict[str, float | None]:
    """Return the condition number of each basis of a size, and the median of Gaussian ones."""
    conditions = {name: condition(basis(name, size)) for name in BASES}
    random = [condition(draw_gaussian(size, size, seed)) for seed in range(DRAWS)]
    defined = [value for value in random if value is not None]
    return {**conditions, GAUSSIAN: float(np.median(defined)) if defined else None}


def find_sample_energy(config: DataConfig) -> SampleEnergy:
    """Return the share of the records' energy in the first 1, 2, ... N rows of each basis."""
    data = load(config)
    if data.X.ndim != 3:
        raise StudyError(f"theory needs recordings (leads, time); {data.name} holds images")
    size, moment = data.X.shape[-1], find_moment(data.X)
    curves = {name: energy_shares(basis(name, size), moment) for name in BASES}
    return SampleEnergy(data.name, len(data), curves)


def count_branches(model: str) -> int:
    """Return how many residual branches a model has."""
    kind, _ = BRANCHES[model]
    return sum(isinstance(module, kind) for module in build(model).modules())
