"""The training problem that the loop receives: data, model, optimizer, order, loss and score."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.config import Config
from seedless.ordering import Order
from seedless.train.loss import Loss

# (probabilities (n, K), labels (n, K)) -> a score, higher for a better model; None where the labels
# do not allow one.
Score = Callable[[NDArray[np.float64], NDArray[np.uint8]], float | None]


@dataclass(frozen=True, eq=False)
class DataSplit:
    """The samples of one split (training, validation or test), on the device.

    Attributes:
        samples: (n, ...) float32, as the model receives them; float16, or in the CPU's memory,
            where the configuration says so.
        labels: (n, K) float32 of 0 and 1.
        ids: (n,) names, for prediction files and messages.
        rows: (n,) the row of each sample in the user's array, where that is the better name.
    """

    samples: Tensor
    labels: Tensor
    ids: NDArray[np.str_]
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Everything that decides a run. Only model, optimizer and the order's losses ever change.

    Attributes:
        score: the validation score by which weights are selected.
        keys: (n,) int64, the training samples' keys for dropout and augmentation.
    """

    config: Config
    model: nn.Module
    optimizer: torch.optim.Optimizer
    order: Order
    loss: Loss
    score: Score
    train: DataSplit
    keys: Tensor
    val: DataSplit | None = None

    @property
    def device(self) -> torch.device:
        """The device that computes; the samples may be in the CPU's memory."""
        return self.train.labels.device
