"""How unusual a sample looks to a model: scores that are higher where it is more so.

Each is a function of the logits z (n, K) or of the probabilities p (n, K), in float64:

| score | multi-class | multi-label |
|---|---|---|
| entropy | -sum p log p | sum over classes of -p log p - (1-p) log(1-p) |
| energy | -log sum exp z (Liu et al., 2020) | -sum log(1 + exp z) (Wang et al., 2021) |
| max_logit | -max z | -max z |

The multi-label energy is the sum of the classes' own energies -log(1 + exp z), each class being a
choice between the logits z and 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.dataset import TASKS
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.evaluate.ranking import area_under_curve

Float64 = NDArray[np.float64]

# The float64 probabilities next to 0 and to 1 that a logit can be had from.
_LEAST, _MOST = 2.0**-1022, 1.0 - 2.0**-53


@dataclass(frozen=True)
class Separation:
    """How well a score tells unusual samples from usual ones.

    ``auc`` is the chance that an unusual one scores higher than a usual one: 1/2 where the score
    knows nothing, below it where the model finds the unusual ones more familiar.
    """

    score: str
    auc: float
    usual: int
    unusual: int


def find_logits(probabilities: ArrayLike, task: str = "multi-label") -> Float64:
    """Return logits that have these probabilities (n, K).

    Multi-label: log p - log(1 - p). A float64 sigmoid gives exactly 1 from a logit of about 37 on,
    so what was beyond is lost: 1 is read as 1 - 2^-53 (36.7) and 0 as 2^-1022 (-708.4).
    Multi-class: log p. A softmax is the same for logits shifted by a constant, so these are the
    logits up to one number a sample; whatever needs that number (the energy) cannot be had.
    """
    p = _read(probabilities, "probabilities", task)
    if p.min(initial=0.0) < 0 or p.max(initial=1.0) > 1:
        raise DataError(f"expected probabilities from 0 to 1, got {p.min()} to {p.max()}")
    if task == "multi-label":
        inside = np.clip(p, _LEAST, _MOST)
        odds: Float64 = np.log(inside) - np.log1p(-inside)
        return odds
    if not np.allclose(p.sum(axis=1), 1.0, atol=1e-6):
        raise DataError("expected multi-class probabilities to sum to 1 for each sample")
    logits: Float64 = np.log(np.maximum(p, _LEAST))
    return logits


def entropy(logits: ArrayLike, task: str = "multi-label") -> Float64:
    """Return how undecided the probabilities are: (n, K) -> (n,), in nats, from 0 on."""
    z = _read(logits, "logits", task)
    if task == "multi-label":
        # H(s(z)) = log(1 + e^-|z|) + |z| s(-|z|): no difference of close numbers, no log of 0.
        size = np.abs(z)
        small = np.exp(-size)
        summed: Float64 = (np.log1p(small) + size * small / (1.0 + small)).sum(axis=1)
        return summed
    shifted = z - z.max(axis=1, keepdims=True)
    odds = np.exp(shifted)
    total = odds.sum(axis=1)
    # -sum p log p = log S - (sum e^d d) / S, with d the shifted logits and S = sum e^d.
    found: Float64 = np.log(total) - (odds * shifted).sum(axis=1) / total
    return np.maximum(found, 0.0)


def energy(logits: ArrayLike, task: str = "multi-label") -> Float64:
    """Return the free energy: (n, K) -> (n,); high where no class claims the sample."""
    z = _read(logits, "logits", task)
    if task == "multi-label":
        claimed: Float64 = np.logaddexp(0.0, z).sum(axis=1)
        return -claimed
    top = z.max(axis=1)
    summed: Float64 = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
    return -summed


def max_logit(logits: ArrayLike, task: str = "multi-label") -> Float64:
    """Return minus the largest logit: (n, K) -> (n,)."""
    largest: Float64 = _read(logits, "logits", task).max(axis=1)
    return -largest


SCORES: dict[str, Callable[[ArrayLike, str], Float64]] = {
    "entropy": entropy,
    "energy": energy,
    "max_logit": max_logit,
}


def score_novelty(
    score: str,
    *,
    logits: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    task: str = "multi-label",
) -> Float64:
    """Return a score by name, higher = more unusual, from logits, or probabilities if only known.

    From multi-class probabilities `max_logit` becomes minus the log of the largest probability,
    and `energy` is refused: see `find_logits`.
    """
    measure = choose("novelty score", score, SCORES)
    if (logits is None) == (probabilities is None):
        raise DataError("expected either logits or probabilities, got both or neither")
    if logits is None:
        if score == "energy" and task == "multi-class":
            raise DataError(
                "the energy needs logits: multi-class probabilities do not hold it; give logits="
            )
        logits = find_logits(np.asarray(probabilities), task)
    return measure(logits, task)


def separate(
    usual: ArrayLike, unusual: ArrayLike, *, task: str = "multi-label"
) -> tuple[Separation, ...]:
    """Return, for each score, how well it tells the logits of two sets of samples apart."""
    first, second = _read(usual, "logits", task), _read(unusual, "logits", task)
    if first.shape[1] != second.shape[1]:
        raise DataError(f"logits of {first.shape[1]} and of {second.shape[1]} classes: not alike")
    truth = np.repeat(np.array([0, 1], dtype=np.uint8), (len(first), len(second)))
    rows = []
    for name, measure in SCORES.items():
        scores = np.concatenate([measure(first, task), measure(second, task)])
        auc = area_under_curve(scores, truth)
        assert auc is not None  # neither set is empty
        rows.append(Separation(name, auc, len(first), len(second)))
    return tuple(rows)


def _read(values: ArrayLike, what: str, task: str) -> Float64:
    choose("task", task, dict.fromkeys(TASKS))
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise DataError(f"expected {what} of shape (n, classes), not empty; got {array.shape}")
    if not np.isfinite(array).all():
        raise DataError(f"expected finite {what}; found NaN or infinity")
    return array
