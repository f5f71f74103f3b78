"""Digests of portable arithmetic, computed here, to be held against those computed elsewhere.

An op's digest covers its output and the gradients of its inputs; a model's covers every gradient
of every step, the losses and the weights at the end: a single differing bit in any of them shows.
Only a NaN's own bits are left out, since processors differ in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seedless.core.digest import digest
from seedless.numerics.counter import draw
from seedless.numerics.dropout import draws
from seedless.numerics.portable.cases import OPS, Case, Drawn
from seedless.numerics.portable.mode import portable

LENGTH = 16  # hex digits kept of each digest
STEPS = 3
Make = Callable[[], nn.Module]


def compute_ops(device: torch.device | str = "cpu") -> dict[str, str]:
    """Return a digest for each op of `OPS`."""
    place = torch.device(device)
    return {name: hash_op(name, case, place) for name, case in OPS.items()}


def hash_op(name: str, case: Case, device: torch.device) -> str:
    """Return the digest of an op's output and of its inputs' gradients."""
    inputs = [
        drawn.make(f"{name}.{i}", device).requires_grad_() for i, drawn in enumerate(case.inputs)
    ]
    with portable():
        y = case.run(*inputs)
        torch.autograd.backward(y, Drawn(tuple(y.shape)).make(f"{name}.grad", device))
    grads = {f"grad.{i}": x.grad for i, x in enumerate(inputs) if x.grad is not None}
    return hash_tensors({"y": y.detach(), **grads})


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the first hex digits of the digest, with every NaN written as one and the same."""
    plain = {name: torch.where(t != t, math.nan, t) for name, t in tensors.items()}
    return digest(plain).removeprefix("sha256:")[:LENGTH]


def compute_models(
    models: Mapping[str, Make] | None = None, device: torch.device | str = "cpu"
) -> dict[str, str]:
    """Return a digest for each model after a few steps; ``models`` adds to torch's own here.

    A model made by ``models`` arrives initialized and takes (batch, 12, time) recordings, or images
    where its name says resnet18.
    """
    place = torch.device(device)
    found = {name: train(name, make(), place) for name, make in TORCH_MODELS.items()}
    return found | {name: train(name, make(), place) for name, make in (models or {}).items()}


def train(name: str, model: nn.Module, device: torch.device, steps: int = STEPS) -> str:
    """Train for a few steps, SGD for images and AdamW else, and return the digest of it all."""
    model.to(device).train()
    image = name == "resnet18"
    shape = SHAPES.get(name, (8, 12, 250))
    x = Drawn(shape, 1.0).make(f"{name}.x", device)
    trained = list(model.parameters())
    optimizer: torch.optim.Optimizer
    if image:
        optimizer = torch.optim.SGD(trained, lr=0.05, momentum=0.9, weight_decay=1e-4)
    else:
        optimizer = torch.optim.AdamW(trained, lr=1e-3)
    keys = torch.arange(len(x), device=device)
    seen: dict[str, Tensor] = {}
    for step in range(steps):
        with portable(), draws(samples=keys, epoch=step):
            optimizer.zero_grad()
            loss = _loss(model(x), image)
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
        seen[f"{step}.loss"] = loss.detach()
        for key, parameter in model.named_parameters():
            if parameter.grad is not None:
                seen[f"{step}.{key}"] = parameter.grad.clone()
    return hash_tensors(seen | {f"end.{key}": value for key, value in model.state_dict().items()})


def _loss(logits: Tensor, image: bool) -> Tensor:
    rows = torch.arange(logits.shape[0], device=logits.device)
    if image:
        return F.cross_entropy(logits, rows * 3 % logits.shape[1])
    classes = torch.arange(logits.shape[1], device=logits.device)
    labels = ((rows[:, None] + classes) % 3 == 0).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, labels)


def compare(found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Return one line for each digest that differs or is missing; none means all agree."""
    lines = []
    for name in sorted({*found, *expected}):
        here, there = found.get(name, "nothing"), expected.get(name, "nothing")
        if here != there:
            lines.append(f"{name}: expected {there}, found {here}")
    return lines


class _Encoder(nn.Module):
    """A transformer over (batch, time, 16), its mean over time, and a head."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x).mean(1))
        return out


class _Recurrent(nn.Module):
    """A recurrent layer in both directions over (batch, time, 16), and a head."""

    def __init__(self, make: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.body = make(16, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x)[0][:, -1])
        return out


def _make(build: Callable[..., nn.Module], *options: Any) -> nn.Module:
    """Build without memory, so that no generator is asked, and fill with counted draws."""
    with torch.device("meta"):
        model = build(*options)
    model.to_empty(device="cpu")
    for name, parameter in model.named_parameters():
        values = torch.from_numpy(draw(0, name, parameter.numel())).view(parameter.shape)
        shift = 1.0 if parameter.ndim == 1 and "norm" in name and "weight" in name else 0.0
        parameter.data.copy_((values - 0.5) * 0.5 + shift)
    return model


TORCH_MODELS: dict[str, Make] = {
    "transformer": lambda: _make(_Encoder),
    "gru": lambda: _make(_Recurrent, nn.GRU),
    "lstm": lambda: _make(_Recurrent, nn.LSTM),
}
SHAPES = {
    "transformer": (6, 11, 16),
    "gru": (6, 11, 16),
    "lstm": (6, 11, 16),
    "resnet18": (8, 3, 16, 16),
}
