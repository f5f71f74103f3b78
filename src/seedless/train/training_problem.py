"""The training problem that the loop receives: data, model, optimizer, order, loss and score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.config import Config
from seedless.core.errors import TrainError
from seedless.data.batch_reader import BatchReader
from seedless.ordering import Order
from seedless.train.learning_rate import UserRates
from seedless.train.loss import Loss
from seedless.train.process_group import TrainingGroup
from seedless.train.user_loss import UserLoss

# (probabilities (n, K), labels (n, K)) -> a score, higher for a better model; None where the labels
# do not allow one.
Score = Callable[[NDArray[np.float64], NDArray[np.uint8]], float | None]


@dataclass(frozen=True, eq=False)
class DataSplit:
    """The samples of one split (training, validation or test), on the device.

    Attributes:
        samples: (n, ...) float32, as the model receives them; float16, or in the CPU's memory,
            where the configuration says so. Large images stay uint8, and ``values`` expands them.
        labels: (n, K) float32 of 0 and 1.
        ids: (n,) names, for prediction files and messages.
        rows: (n,) the row of each sample in the user's array, where that is the better name.
        values: (channels, 256) float32 on the device, what the model receives for each byte.
    """

    samples: Tensor
    labels: Tensor
    ids: NDArray[np.str_]
    rows: NDArray[np.int64] | None = None
    values: Tensor | None = None

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def device(self) -> torch.device:
        """The device that computes; the samples may be in the CPU's memory."""
        return self.labels.device

    def expect(self, batches: Sequence[NDArray[np.int64]], epoch: int) -> None:
        """Do nothing: the samples are in memory already."""

    def read(self, rows: Tensor, epoch: Tensor | int) -> tuple[Tensor, Tensor]:
        """Return samples (B, ...) as the model receives them, and labels (B, K), of rows (B,)."""
        return self.as_input(self.samples[rows]), self.labels[rows]

    def as_input(self, samples: Tensor) -> Tensor:
        """Return some of the samples (B, ...) as the model receives them, on the device."""
        if self.values is None:
            return to_model_input(samples, self.device)
        return look_up_bytes(samples.to(self.device), self.values)

    def expand(self) -> Tensor:
        """Return all samples as they are stored, those of bytes as float32."""
        return self.samples if self.values is None else self.as_input(self.samples)

    def name_samples(self, rows: NDArray[np.int64]) -> list[str]:
        """Return what a message calls the samples of some rows."""
        if self.rows is None:
            return list(map(str, self.ids[rows]))
        return [f"train[{row}]" for row in sorted(self.rows[rows])]


@dataclass(frozen=True, eq=False)
class StreamedSplit:
    """A split whose batches are read one by one, by the user's collate function.

    Attributes:
        reader: reads and checks batches.
        canonical: (n,) the rows sorted by digest, the order in which the split is evaluated.
        device: the device that computes.
    """

    reader: BatchReader
    canonical: NDArray[np.int64]
    device: torch.device

    def __len__(self) -> int:
        return len(self.reader)

    def expect(self, batches: Sequence[NDArray[np.int64]], epoch: int) -> None:
        """Let the workers read these batches ahead."""
        self.reader.expect(batches, epoch)

    def read(self, rows: Tensor, epoch: Tensor | int) -> tuple[Any, Any]:
        """Return inputs and targets of rows (B,), with their tensors on the device."""
        inputs, targets = self.reader.read(rows.cpu().numpy(), int(epoch))
        return move(inputs, self.device), move(targets, self.device)

    def name_samples(self, rows: NDArray[np.int64]) -> list[str]:
        """Return what a message calls the samples of some rows."""
        return [f"{self.reader.split}[{row}]" for row in sorted(rows)]


def to_model_input(samples: Tensor, device: torch.device) -> Tensor:
    """Return samples as the model receives them: on the device, float32 or integers."""
    moved = samples.to(device)
    return moved.float() if moved.is_floating_point() else moved


def look_up_bytes(images: Tensor, values: Tensor) -> Tensor:
    """Return images (B, channels, ...) of bytes as float32, by a table (channels, 256).

    The bits are those of the table, whatever the device: nothing is computed.
    """
    shape = (1, -1) + (1,) * (images.ndim - 2)
    begin = torch.arange(0, values.numel(), 256, device=images.device, dtype=torch.int32)
    found = values.flatten()[images.int() + begin.view(shape)]
    if images.ndim == 4 and images.device.type == "cuda":  # as samples that are float32 already
        return found.contiguous(memory_format=torch.channels_last)
    return found


def move(batch: Any, device: torch.device) -> Any:
    """Return a batch of nested dicts, lists and tuples with its tensors on a device."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {name: move(item, device) for name, item in batch.items()}
    if isinstance(batch, list):
        return [move(item, device) for item in batch]
    if isinstance(batch, tuple):
        moved = [move(item, device) for item in batch]
        return type(batch)(*moved) if hasattr(batch, "_fields") else tuple(moved)
    return batch


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Everything that decides a run. Only model, optimizer and the order's losses ever change.

    Attributes:
        score: the validation score by which weights are selected; None for a user's loss, where
            the lowest validation loss selects them.
        keys: (n,) int64, the training samples' keys for dropout and augmentation.
        rates: the learning rates of a user's optimizer or scheduler; None for the configuration's.
        group: the processes that train together, where there are several; they change no bit.
        notes: what a user should know of the data before the first step, in words.
    """

    config: Config
    model: nn.Module
    optimizer: torch.optim.Optimizer
    order: Order
    loss: Loss | UserLoss
    score: Score | None
    train: DataSplit | StreamedSplit
    keys: Tensor
    val: DataSplit | StreamedSplit | None = None
    rates: UserRates | None = None
    group: TrainingGroup | None = None
    notes: tuple[str, ...] = ()

    @property
    def device(self) -> torch.device:
        """The device that computes; the samples may be in the CPU's memory."""
        return self.train.device

    @property
    def in_memory(self) -> DataSplit:
        """The training split of a problem whose samples are in memory."""
        if not isinstance(self.train, DataSplit):
            raise TrainError("expected samples in memory, got a dataset that is read in batches")
        return self.train
