"""What the loop is given: samples on the device, a model, and everything that was chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.config import Config
from seedless.ordering import Order
from seedless.train.loss import Loss

# (probabilities (n, K), labels (n, K)) -> a score that is higher where the model is better, or None
# where the labels allow none.
Score = Callable[[NDArray[np.float64], NDArray[np.uint8]], float | None]


@dataclass(frozen=True, eq=False)
class Split:
    """Samples of one purpose, resident on the device.

    Attributes:
        samples: (n, ...) float32, as the model receives them; float16, or on the host, where
            the configuration says so.
        labels: (n, K) float32 of 0 and 1.
        ids: (n,) names, for prediction files and messages.
        rows: (n,) where each lay in the array it came from, if that says more than its name.
    """

    samples: Tensor
    labels: Tensor
    ids: NDArray[np.str_]
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """All that decides a run. The model, the optimizer and the order's losses are what changes.

    ``keys``: (n,) int64, what dropout and augmentation of the training samples draw by.
    """

    config: Config
    model: nn.Module
    optimizer: torch.optim.Optimizer
    order: Order
    loss: Loss
    score: Score
    train: Split
    keys: Tensor
    val: Split | None = None

    @property
    def device(self) -> torch.device:
        """Where all computations are; the samples may wait on the host."""
        return self.train.labels.device
