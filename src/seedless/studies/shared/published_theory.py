"""The published claims about starts, computed as they were stated.

`basis_theory` compares filters of equal norm. Here the filters have the scale that the published
text gives them: rows of an orthonormal matrix have norm 1, Kaiming's have a squared norm of 2 on
average, since their entries are N(0, 2/N).
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seedless.init.bases import BASES, basis
from seedless.init.initialization import initialize
from seedless.models import build
from seedless.models.conformer import Bottleneck
from seedless.studies.shared.basis_theory import (
    DRAWS,
    FILTERS,
    NOISE,
    SIZE,
    covariance,
    draw_gaussian,
)

Float64 = NDArray[np.float64]
MOMENT_DRAWS = 500
ASPECTS = (0.25, 0.5, 0.75)  # gamma = M / N
ASPECT_SIZES = (64, 256, 512)  # N
SCALES = (0.01, 0.03, 0.42, 1.0)  # residual scales of the published ablation, and 1/L
DEPTH = 33  # L of the published text
DEVIATIONS = (0.1, 1 / math.sqrt(3), 1.0, 3.0, 10.0)  # of what enters a GELU
SHARED_TOLERANCE = 1e-9  # of the product of two rows of norm 1 that are the same
FREQUENCIES = 512  # at which the gain of a convolution is evaluated


def scaled_information(weights: Float64, signal: Float64, noise: float = NOISE) -> float:
    """Return 1/2 log det(I + W S W^T / s^2) in nats; rows keep their norms."""
    _, value = np.linalg.slogdet(np.eye(len(weights)) + weights @ signal @ weights.T / noise)
    return float(value) / 2


def kaiming_information(rho: float) -> float:
    """Return the median information over draws of M x N Kaiming weights."""
    signal = covariance(SIZE, rho)
    return float(np.median([scaled_information(drawn, signal) for drawn in _draw_kaiming()]))


@lru_cache(maxsize=1)
def _draw_kaiming() -> tuple[Float64, ...]:
    return tuple(draw_gaussian(FILTERS, SIZE, seed) for seed in range(DRAWS))


def dct_information(rho: float) -> float:
    """Return the information in the first M rows of the DCT, each of norm 1."""
    return scaled_information(basis("dct", SIZE)[:FILTERS], covariance(SIZE, rho))


def find_crossing(low: float = 0.0, high: float = 0.9) -> float:
    """Return the rho from which the DCT has more information than Kaiming, by bisection.

    At ``low`` Kaiming has more and at ``high`` the DCT, as the published figure has it.
    """
    for _ in range(12):  # to 0.0002
        middle = (low + high) / 2
        if dct_information(middle) < kaiming_information(middle):
            low = middle
        else:
            high = middle
    return high


def measure_energy_moments(rows: int = FILTERS, size: int = SIZE) -> tuple[float, float]:
    """Return mean and variance of |W x|^2 / |x|^2 over draws of Kaiming's W (rows, size).

    The published values are 2 K / N and 8 K / N^2. One fixed x is enough: the distribution of W
    does not change when x is turned.
    """
    x = np.cos(np.arange(size))
    ratios = [
        float(((draw_gaussian(rows, size, seed) @ x) ** 2).sum() / (x @ x))
        for seed in range(MOMENT_DRAWS)
    ]
    return float(np.mean(ratios)), float(np.var(ratios, ddof=1))


def limit_condition(aspect: float) -> float:
    """Return (1 + sqrt gamma) / (1 - sqrt gamma), the limit by Marchenko and Pastur's law."""
    return (1 + math.sqrt(aspect)) / (1 - math.sqrt(aspect))


@lru_cache(maxsize=16)
def measure_condition(aspect: float, size: int) -> float:
    """Return the median condition number of drawn matrices of ``aspect * size`` x ``size``."""
    drawn = [draw_gaussian(round(aspect * size), size, seed) for seed in range(DRAWS)]
    values = [np.linalg.svd(one, compute_uv=False) for one in drawn]
    return float(np.median([one[0] / one[-1] for one in values]))


def find_coherence(one: str, other: str, size: int = SIZE) -> tuple[float, int]:
    """Return the mutual coherence of two bases, and how many rows they share up to the sign.

    max |<b_i, c_j>| over all rows of one basis and all of the other.
    """
    products = np.abs(basis(one, size) @ basis(other, size).T)
    return float(products.max()), int((products > 1 - SHARED_TOLERANCE).sum())


def list_pairs_of_bases() -> list[tuple[str, str]]:
    """Return every pair of different bases."""
    names = list(BASES)
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def gelu_ratio(deviation: float) -> float:
    """Return E[GELU(x)^2] / E[x^2] for a normal x of mean 0, by Gauss and Hermite's rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    x = deviation * nodes
    values = x * 0.5 * np.array([math.erfc(-one / math.sqrt(2)) for one in x])
    return float((weights * values**2).sum() / (weights * x**2).sum())


@lru_cache(maxsize=4)
def measure_branch_gains(basis_name: str) -> tuple[float, ...]:
    """Return the largest gain of the layers of the conformer's bottlenecks at residual scale 1.

    The gain of a convolution is the largest singular value of its transfer matrix over all
    frequencies: by how much it can lengthen a long signal. One number for each of the layers of a
    branch, the largest over all branches.
    """
    model = build("conformer")
    initialize(model, basis_name, residual_scale=1.0, heads="basis")
    branches = [module for module in model.modules() if isinstance(module, Bottleneck)]
    gains = []
    for branch in branches:
        weights = [p.detach().double().numpy() for p in branch.parameters() if p.ndim == 3]
        gains.append([find_gain(weight) for weight in weights])
    return tuple(float(value) for value in np.max(np.array(gains), axis=0))


def find_gain(weight: Float64) -> float:
    """Return the largest gain of a convolution (O, I, kernel) over frequencies."""
    transfer = np.fft.rfft(weight, FREQUENCIES, axis=2)
    singular = np.linalg.svd(np.moveaxis(transfer, 2, 0), compute_uv=False)
    return float(singular.max())
