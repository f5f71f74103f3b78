"""Small models of each kind, their batches and their loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import seedless

CLASSES = 5


class Residual(nn.Module):
    """Convolutions with BatchNorm in training."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter, self.norm = nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
            )
            for _ in range(3)
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 3, height, width) -> (batch, classes)."""
        x = F.relu(self.norm(self.enter(x)))
        for block in self.blocks:
            x = F.relu(x + block(x))
        out: Tensor = self.head(x.mean((2, 3)))
        return out


class Encoder(nn.Module):
    """A transformer with dropout that samples decide."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, activation="gelu"
        )
        self.enter = nn.Linear(12, width)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.drop, self.head = seedless.Dropout(0.2, layer=0), nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 12, time) -> (batch, classes)."""
        out: Tensor = self.head(self.drop(self.body(self.enter(x.transpose(1, 2))).mean(1)))
        return out


class Recurrent(nn.Module):
    """A GRU."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.body, self.head = nn.GRU(12, width, batch_first=True), nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 12, time) -> (batch, classes)."""
        out: Tensor = self.head(self.body(x.transpose(1, 2))[0][:, -1])
        return out


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conformer, small": (lambda: seedless.build("conformer", small=True), (12, 250)),
    "ResNet with BatchNorm": (Residual, (3, 16, 16)),
    "transformer, dropout on": (Encoder, (12, 60)),
    "GRU": (Recurrent, (12, 30)),
}


def make_model(name: str, device: str) -> nn.Module:
    """Return a model in its structured start, in training mode."""
    model = MODELS[name][0]()
    seedless.initialize(model, "dct")
    return model.to(device).train()


def make_batch(name: str, samples: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return samples made from integers, targets and keys."""
    shape = (samples, *MODELS[name][1])
    numbers = torch.arange(torch.Size(shape).numel()) * 40503 % 1024 - 512
    x = (numbers.float() / 256).view(shape)
    return x.to(device), (torch.arange(samples) % 2).to(device), torch.arange(samples).to(device)


def loss_of(outputs: Tensor, x: Tensor, y: Tensor, keys: Tensor) -> Tensor:
    """Return the cross entropy of the first classes."""
    return F.cross_entropy(outputs[:, :CLASSES], y)
