"""Small models of torch's own layers, whose training the committed digests cover."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seedless.numerics.counter_random import draw_uniform

Make = Callable[[], nn.Module]


class Encoder(nn.Module):
    """A transformer over (batch, time, 16), its mean over time, and a head."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits: (batch, 5)."""
        out: Tensor = self.head(self.body(x).mean(1))
        return out


class Recurrent(nn.Module):
    """A recurrent layer in both directions over (batch, time, 16), and a head."""

    def __init__(self, make: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.body = make(16, 12, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits: (batch, 5)."""
        out: Tensor = self.head(self.body(x)[0][:, -1])
        return out


def make_net(build: Callable[..., nn.Module], *options: Any) -> nn.Module:
    """Build a model without torch's generator, with weights from counter-based random numbers."""
    with torch.device("meta"):
        model = build(*options)
    model.to_empty(device="cpu")
    for name, parameter in model.named_parameters():
        values = torch.from_numpy(draw_uniform(0, name, parameter.numel())).view(parameter.shape)
        shift = 1.0 if parameter.ndim == 1 and "norm" in name and "weight" in name else 0.0
        parameter.data.copy_((values - 0.5) * 0.5 + shift)
    return model


NETWORKS: dict[str, Make] = {
    "transformer": lambda: make_net(Encoder),
    "gru": lambda: make_net(Recurrent, nn.GRU),
    "lstm": lambda: make_net(Recurrent, nn.LSTM),
}
INPUT_SHAPE = (5, 3, 16)  # of what they are trained on: batch, time, features
