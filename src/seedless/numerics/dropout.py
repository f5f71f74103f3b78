"""Dropout without a generator: the mask is a pure function of sample, epoch, layer and element.

A sample meets the same mask wherever it stands in a batch, however the batch is split, and after
any restart. Whoever calls the model says which samples and which epoch they are:

    with dropout_keys(samples=keys, epoch=3):
        logits = model(x)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import WORD_MASK, philox

Active = tuple[Tensor, Tensor | int]
_ACTIVE: ContextVar[Active | None] = ContextVar("draws", default=None)


class _Traced:
    """The same, where torch.compile can see it: it traces no ContextVar."""

    active: Active | None = None


@contextmanager
def dropout_keys(*, samples: Tensor, epoch: Tensor | int) -> Iterator[None]:
    """Say whose dropout masks are drawn: one int64 key a sample (B,), and the epoch.

    `seedless.sample_keys(X)` gives keys that follow the samples' content. The epoch may be a tensor
    on the device, so that a captured graph can be replayed for another epoch.
    """
    if not isinstance(epoch, Tensor):
        _check_word("epoch", epoch)
    token = _ACTIVE.set((samples, epoch))
    before, _Traced.active = _Traced.active, (samples, epoch)
    try:
        yield
    finally:
        _ACTIVE.reset(token)
        _Traced.active = before


def dropout(x: Tensor, p: float, *, samples: Tensor, epoch: Tensor | int, layer: int) -> Tensor:
    """Zero each element of x (B, ...) with probability p and scale the others by 1/(1-p)."""
    _check(x, p, samples)
    if p == 0:
        return x
    keep = keep_mask(x.shape, p, samples=samples.to(x.device), epoch=epoch, layer=layer)
    if p == 1:
        return x * keep
    return x * keep.to(x.dtype) * (1.0 / (1.0 - p))


def keep_mask(
    shape: torch.Size, p: float, *, samples: Tensor, epoch: Tensor | int, layer: int
) -> Tensor:
    """Return the elements that stay, as a bool tensor of ``shape`` (B, ...).

    Element e of sample s is word e % 4 of philox((e // 4, layer, epoch), s); it stays while that
    word is below (1-p) 2^32.
    """
    size = shape[1:].numel()
    block = torch.arange((size + 3) // 4, device=samples.device)[None, :]
    zero = torch.zeros_like(block)
    key = samples[:, None]
    words = philox(
        (block, zero + layer, (zero + epoch) & WORD_MASK, zero),
        (key & WORD_MASK, (key >> 32) & WORD_MASK),
    )
    bits = torch.stack(words, dim=-1).flatten(1)[:, :size]
    return (bits < round((1.0 - p) * 2**32)).view(shape)


class Dropout(nn.Module):
    """`dropout` as a layer. ``layer`` tells the masks of a model's dropouts apart."""

    def __init__(self, p: float, layer: int) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise NumericsError(f"dropout needs a probability from 0 to 1, got {p!r}")
        _check_word("layer", layer)
        self.p = p
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Drop in training mode, as the surrounding `draws` says; pass x on otherwise."""
        if not self.training:
            return x
        active = _Traced.active if torch.compiler.is_compiling() else _ACTIVE.get()
        if active is None:
            raise NumericsError(
                "dropout in training mode must know its samples and epoch: wrap the forward pass "
                "in `with seedless.dropout_keys(samples=keys, epoch=e):`, or call model.eval()"
            )
        samples, epoch = active
        return dropout(x, self.p, samples=samples, epoch=epoch, layer=self.layer)

    def extra_repr(self) -> str:
        """Show rate and layer number when the model is printed."""
        return f"p={self.p}, layer={self.layer}"


def check_layers(model: nn.Module) -> None:
    """Refuse a model two of whose dropouts share a layer number: their masks would be alike."""
    seen: dict[int, str] = {}
    for name, module in model.named_modules():
        if isinstance(module, Dropout):
            if module.layer in seen:
                raise NumericsError(
                    f"{seen[module.layer]} and {name} are both Dropout(layer={module.layer}), and "
                    "would drop alike; give each dropout of a model its own layer"
                )
            seen[module.layer] = name


def _check_word(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= WORD_MASK:
        raise NumericsError(f"dropout needs its {name} from 0 to 2^32 - 1, got {value!r}")


def _check(x: Tensor, p: float, samples: Tensor) -> None:
    if not 0 <= p <= 1:
        raise NumericsError(f"dropout needs a probability from 0 to 1, got {p!r}")
    if samples.dtype != torch.int64 or samples.shape != x.shape[:1]:
        raise NumericsError(
            f"dropout needs one int64 key a sample: expected shape {tuple(x.shape[:1])}, "
            f"got {samples.dtype} of shape {tuple(samples.shape)}"
        )
