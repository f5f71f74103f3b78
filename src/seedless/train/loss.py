"""What is minimized, one value a sample: an order may rank samples by it, a batch takes the mean.

binary cross-entropy of class k: -w_k y log s(z) - (1 - y) log(1 - s(z)), mean over the classes,
with w_k = sqrt(N / N_k) where class weights are on; cross-entropy: -log softmax(z)_y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.config import LossConfig
from seedless.core.errors import ConfigError
from seedless.core.registry import choose
from seedless.models.layers import Classifier
from seedless.train.arithmetic import sigmoid, softmax

SPARE_PENALTY = 0.01


@dataclass(frozen=True)
class Loss:
    """Which loss, and how logits become probabilities."""

    name: str
    per_sample: Callable[[Tensor, Tensor], Tensor]
    clamp: float | None
    spare_penalty: float
    arithmetic: str = "native"

    def __call__(self, model: nn.Module, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each sample: (B, ...), (B, K) -> (B,)."""
        penalty: Tensor | None = None
        if self.spare_penalty and isinstance(model, Classifier):
            features = model.features(samples)
            logits = model.head(features)
            spare = features[:, -model.spare :].float()
            penalty = self.spare_penalty * spare.square().mean(dim=1)
        else:
            logits = model(samples)
        losses = self.per_sample(self.bound(logits.float()), labels)
        return losses if penalty is None else losses + penalty

    def bound(self, logits: Tensor) -> Tensor:
        """Return the logits within the clamp."""
        return logits if self.clamp is None else logits.clamp(-self.clamp, self.clamp)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return probabilities in float64: a sigmoid for each class, or a softmax over them."""
        exact = self.bound(logits.double())
        squash = sigmoid if self.name == "bce" else softmax
        return squash(exact, self.arithmetic)


def make_loss(
    config: LossConfig,
    labels: NDArray[np.uint8],
    task: str,
    model: nn.Module,
    device: torch.device,
    arithmetic: str = "native",
) -> Loss:
    """Return the loss a configuration asks for; ``labels`` (n, K) are those trained on."""
    name = config.name or ("cross_entropy" if task == "multi-class" else "bce")
    choose("loss", name, {"bce": None, "cross_entropy": None})
    weighting = choose("class weighting", config.class_weights, CLASS_WEIGHTS)
    if name == "cross_entropy":
        if task != "multi-class":
            raise ConfigError(
                "loss.name is cross_entropy, which needs exactly one class a sample, but these "
                "samples may have several or none; use bce"
            )
        if config.class_weights != "none":
            raise ConfigError("loss.class_weights belongs to bce; leave it out of cross_entropy")
        per_sample = cross_entropy
    else:
        weights = torch.from_numpy(weighting(labels).astype(np.float32)).to(device)
        per_sample = partial(binary_cross_entropy, weights=weights)
    spare = model.spare if isinstance(model, Classifier) else 0
    if config.spare_penalty and not spare:
        raise ConfigError(
            "loss.spare_penalty holds features beyond the classes small, and this model has none; "
            "leave it out"
        )
    asked = SPARE_PENALTY if config.spare_penalty is None else config.spare_penalty
    return Loss(name, per_sample, config.clamp, asked if spare else 0.0, arithmetic)


def binary_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return the mean over classes of each sample's weighted binary cross-entropy: (B,)."""
    each = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=weights, reduction="none")
    return each.mean(dim=1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each sample's cross-entropy with its one class, given as a row of one 1: (B,)."""
    return -(labels * F.log_softmax(logits, dim=1)).sum(dim=1)


def _weigh_equally(labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.ones(labels.shape[1])


def _weigh_by_root(labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """sqrt(N / N_k); 1 for a class without a positive."""
    positives = labels.sum(axis=0, dtype=np.int64)
    return np.where(positives > 0, np.sqrt(len(labels) / np.maximum(positives, 1)), 1.0)


CLASS_WEIGHTS = {"none": _weigh_equally, "sqrt": _weigh_by_root}
