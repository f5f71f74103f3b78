"""What a linear layer does to a correlated signal, in closed form.

S is the covariance of a signal of N samples, W a layer of M filters: (M, N).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StudyError
from seedless.init.layer_weights import normal_weights

Float64 = NDArray[np.float64]
BLOCK = 256  # records at a time


def covariance(size: int, rho: float) -> Float64:
    """Return S of an AR(1) signal of unit variance: rho^|i-j|, (size, size)."""
    if not -1 < rho < 1:
        raise StudyError(f"expected a correlation between -1 and 1, got {rho!r}")
    steps = np.arange(size)
    found: Float64 = np.power(float(rho), np.abs(steps[:, None] - steps[None, :]))
    return found


def draw_gaussian(rows: int, columns: int, seed: int = 0) -> Float64:
    """Return He's normal weights (rows, columns), a function of the seed and the shape alone."""
    return normal_weights((rows, columns), columns, seed, f"gaussian {rows} x {columns}")


def draw_orthonormal(size: int, seed: int = 0) -> Float64:
    """Return a random orthonormal matrix (size, size): QR of a Gaussian one, R's diagonal > 0."""
    q, r = np.linalg.qr(draw_gaussian(size, size, seed))
    found: Float64 = (q * np.sign(np.diagonal(r))).T
    return found


def find_klt(signal: Float64) -> Float64:
    """Return the eigenvectors of S as rows, the largest eigenvalue first: no basis keeps more."""
    _, vectors = np.linalg.eigh(signal)
    found: Float64 = vectors.T[::-1]
    return found


def keep_energy(basis: Float64, signal: Float64) -> Float64:
    """Return the share of a signal's energy in the first 1, 2, ... N rows of a basis.

    sum_{i<M} w_i S w_i^T / tr S.
    """
    rows = ((basis @ signal) * basis).sum(axis=1)
    found: Float64 = np.cumsum(rows) / np.trace(signal)
    return found


def find_moment(samples: NDArray[np.float32]) -> Float64:
    """Return the second moment (N, N) of samples (n, leads, N), each lead's mean taken off.

    It stands for S where a signal is measured: the energy of the samples depends on nothing else.
    Records are taken a block at a time, for they may lie in a file larger than memory.
    """
    size = samples.shape[-1]
    found = np.zeros((size, size))
    for start in range(0, len(samples), BLOCK):
        lines = samples[start : start + BLOCK].reshape(-1, size).astype(np.float64)
        lines -= lines.mean(axis=1, keepdims=True)
        found += lines.T @ lines
    return found


def condition(weights: Float64) -> float | None:
    """Return the largest singular value over the smallest; None where a matrix is singular."""
    values = np.linalg.svd(weights, compute_uv=False)
    return None if values[-1] <= values[0] * 1e-12 else float(values[0] / values[-1])


def information(weights: Float64, signal: Float64, noise: float) -> float:
    """Return 1/2 log det(I + W S W^T / s^2) in nats, each row of W scaled to norm 1.

    Equal rows mean equal energy: what differs is where the filters look, not how loud they are.
    ``noise`` is s^2.
    """
    if noise <= 0:
        raise StudyError(f"expected noise of a variance above 0, got {noise!r}")
    rows = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    _, value = np.linalg.slogdet(np.eye(len(rows)) + rows @ signal @ rows.T / noise)
    return float(value) / 2


def spread_off_diagonal(basis: Float64, signal: Float64) -> float:
    """Return the share of ||C S C^T||^2 beside the diagonal: 0 where C decorrelates the signal."""
    turned = basis @ signal @ basis.T
    beside = turned - np.diag(np.diagonal(turned))
    return float((beside * beside).sum() / (turned * turned).sum())


def bound_scales(branches: int, layers: int) -> tuple[float, float | None]:
    """Return the scales of residual exits that keep L branches of m layers bounded.

    1/L where a branch does not amplify, as an orthonormal one; L^(-1/(2m-2)) for random weights
    (Fixup), None where m = 1 leaves it undefined.
    """
    if branches < 1 or layers < 1:
        raise StudyError(f"expected branches and layers of at least 1, got {branches}, {layers}")
    fixup = None if layers == 1 else math.pow(branches, -1 / (2 * layers - 2))
    return 1 / branches, fixup
