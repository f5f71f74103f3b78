"""Dropout without a generator: the mask is a pure function of sample, epoch, layer and element.

A sample gets the same mask at any place in a batch, however the batch is split, and after any
restart. The code that calls the model says which samples and which epoch these are:

    with dropout_keys(samples=keys, epoch=3):
        logits = model(x)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import WORD_MASK, philox

KeysAndEpoch = tuple[Tensor, Tensor | int]
_ACTIVE: ContextVar[KeysAndEpoch | None] = ContextVar("dropout_keys", default=None)


class _Traced:
    """A second copy of `_ACTIVE` for torch.compile, which cannot trace a ContextVar."""

    active: KeysAndEpoch | None = None


@contextmanager
def dropout_keys(*, samples: Tensor, epoch: Tensor | int) -> Iterator[None]:
    """Set the samples and the epoch that the dropout masks of a forward pass are computed from.

    Args:
        samples: one int64 key for each sample of the batch, (B,). `seedless.sample_keys(X)` returns
            keys that depend on the samples' content alone.
        epoch: 0 to 2^32 - 1. It may be a tensor on the device, so that a captured CUDA graph can be
            replayed for another epoch.

    Example:
        >>> keys = torch.from_numpy(seedless.sample_keys(X))
        >>> with seedless.dropout_keys(samples=keys[rows], epoch=3):
        ...     logits = model(X[rows])
    """
    if not isinstance(epoch, Tensor):
        check_integer("epoch", epoch, 0, WORD_MASK, error=NumericsError)
    token = _ACTIVE.set((samples, epoch))
    before, _Traced.active = _Traced.active, (samples, epoch)
    try:
        yield
    finally:
        _ACTIVE.reset(token)
        _Traced.active = before


def dropout(x: Tensor, p: float, *, samples: Tensor, epoch: Tensor | int, layer: int) -> Tensor:
    """Return x (B, ...) with each element zero with probability p, the others times 1/(1-p).

    Source: Srivastava et al., JMLR 15, 2014, in the "inverted" form of torch.nn.Dropout.
    """
    _check_arguments(x, p, samples)
    if p == 0:
        return x
    keep = keep_mask(x.shape, p, samples=samples.to(x.device), epoch=epoch, layer=layer)
    if p == 1:
        return x * keep
    return x * keep.to(x.dtype) * (1.0 / (1.0 - p))


def keep_mask(
    shape: torch.Size, p: float, *, samples: Tensor, epoch: Tensor | int, layer: int
) -> Tensor:
    """Return the elements to keep as a bool tensor of ``shape`` (B, ...).

    Element e of sample s is kept where word e % 4 of philox((e // 4, layer, epoch, 0), s) is below
    (1-p) 2^32.
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
    """Dropout as a layer, for use inside `dropout_keys`; it changes nothing in evaluation mode.

    Args:
        p: probability that an element is set to zero.
        layer: a number from 0 to 2^32 - 1, different for each dropout layer of a model, so that
            their masks differ.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 8), seedless.Dropout(0.5, layer=0))
    """

    def __init__(self, p: float, layer: int) -> None:
        super().__init__()
        _check_probability(p)
        check_integer("layer", layer, 0, WORD_MASK, error=NumericsError)
        self.p = p
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Return x with dropout in training mode, and x itself in evaluation mode."""
        if not self.training:
            return x
        active = _Traced.active if torch.compiler.is_compiling() else _ACTIVE.get()
        if active is None:
            raise NumericsError(
                "dropout in training mode needs the keys of the samples and the epoch: wrap the "
                "forward pass in `with seedless.dropout_keys(samples=keys, epoch=e):`, or call "
                "model.eval()"
            )
        samples, epoch = active
        return dropout(x, self.p, samples=samples, epoch=epoch, layer=self.layer)

    def extra_repr(self) -> str:
        """Show rate and layer number when the model is printed."""
        return f"p={self.p}, layer={self.layer}"


def check_layers(model: nn.Module) -> None:
    """Refuse a model with two dropout layers of one number: their masks would be equal."""
    seen: dict[int, str] = {}
    for name, module in model.named_modules():
        if isinstance(module, Dropout):
            if module.layer in seen:
                raise NumericsError(
                    f"{seen[module.layer]} and {name} are both Dropout(layer={module.layer}), so "
                    "their masks would be equal; give each dropout of a model its own layer number"
                )
            seen[module.layer] = name


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise NumericsError(f"dropout needs a probability from 0 to 1, got {p!r}")


def _check_arguments(x: Tensor, p: float, samples: Tensor) -> None:
    _check_probability(p)
    if samples.dtype != torch.int64 or samples.shape != x.shape[:1]:
        raise NumericsError(
            f"dropout needs one int64 key for each sample: expected shape {tuple(x.shape[:1])}, "
            f"got {samples.dtype} of shape {tuple(samples.shape)}"
        )
