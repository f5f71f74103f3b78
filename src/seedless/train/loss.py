"""The losses, one value for each sample: a step minimizes their mean, an order may rank by them.

Binary cross-entropy of class k with logit z and label y: -w_k y log s(z) - (1 - y) log(1 - s(z)),
averaged over the classes; s is the sigmoid and w_k = sqrt(N / N_k) with class weights "sqrt" (N
samples, N_k of them positive), else 1. Cross-entropy of class y: -w_y log softmax(z)_y.
"""

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
from seedless.core.setting_choices import LOSSES
from seedless.models.layers import Classifier
from seedless.train.arithmetic import sigmoid, softmax

SPARE_PENALTY = 0.01


@dataclass(frozen=True)
class Loss:
    """A loss function, and the probabilities that belong to it.

    Attributes:
        name: "bce" or "cross_entropy".
        per_sample: (logits (B, K), labels (B, K)) -> losses (B,).
        clamp: logits are limited to [-clamp, clamp]; None for no limit.
        spare_penalty: factor on the mean square of the features that belong to no class.
        arithmetic: "native" or "portable", for the probabilities.
    """

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
        losses = self.per_sample(self.clamp_logits(logits.float()), labels)
        return losses if penalty is None else losses + penalty

    def clamp_logits(self, logits: Tensor) -> Tensor:
        """Return the logits limited to [-clamp, clamp]."""
        return logits if self.clamp is None else logits.clamp(-self.clamp, self.clamp)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return probabilities (n, K) in float64: the sigmoid of each class, or a softmax."""
        activation = sigmoid if self.name == "bce" else softmax
        return activation(self.clamp_logits(logits.double()), self.arithmetic)


def make_loss(
    config: LossConfig,
    labels: NDArray[np.uint8],
    task: str,
    model: nn.Module,
    device: torch.device,
    arithmetic: str = "native",
) -> Loss:
    """Return the loss of a configuration; ``labels`` (n, K) are those of the training samples."""
    name = config.name or ("cross_entropy" if task == "multi-class" else "bce")
    choose("loss", name, dict.fromkeys(LOSSES))
    weighting = choose("class weighting", config.class_weights, CLASS_WEIGHTS)
    if name == "cross_entropy" and task != "multi-class":
        raise ConfigError(
            "loss.name is cross_entropy, which needs exactly one class for each sample, but "
            "these samples may have several or none; use bce"
        )
    weights = torch.from_numpy(weighting(labels).astype(np.float32)).to(device)
    per_sample: Callable[[Tensor, Tensor], Tensor]
    if name == "bce":
        per_sample = partial(binary_cross_entropy, weights=weights)
    elif config.class_weights == "none":
        per_sample = cross_entropy
    else:
        per_sample = partial(weighted_cross_entropy, weights=weights)
    spare = model.spare if isinstance(model, Classifier) else 0
    if config.spare_penalty and not spare:
        raise ConfigError(
            "loss.spare_penalty is for features that belong to no class, and this model has none; "
            "leave it out"
        )
    penalty = SPARE_PENALTY if config.spare_penalty is None else config.spare_penalty
    return Loss(name, per_sample, config.clamp, penalty if spare else 0.0, arithmetic)


def binary_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return the mean over classes of each sample's weighted binary cross-entropy: (B,)."""
    by_class = F.binary_cross_entropy_with_logits(
        logits, labels, pos_weight=weights, reduction="none"
    )
    return by_class.mean(dim=1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each sample's cross-entropy: (B,); a label is a row with a single 1."""
    return -(labels * F.log_softmax(logits, dim=1)).sum(dim=1)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return each sample's cross-entropy times the weight of its class: (B,)."""
    return cross_entropy(logits, labels * weights)


def _equal_weights(labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.ones(labels.shape[1])


def _sqrt_weights(labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return sqrt(N / N_k) for each class, and 1 for a class without positives."""
    positives = labels.sum(axis=0, dtype=np.int64)
    return np.where(positives > 0, np.sqrt(len(labels) / np.maximum(positives, 1)), 1.0)


CLASS_WEIGHTS = {"none": _equal_weights, "sqrt": _sqrt_weights}
