"""Dropout without a generator: the mask is a pure function of sample, epoch, layer and element.

A sample gets the same mask at any place in a batch, however the batch is split, and after any
restart. The code that calls the model says which samples and which epoch these are:

    with dropout_keys(samples=keys, epoch=3):
        logits = model(x)
"""

import torch
from torch import Tensor, nn

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError
from seedless.numerics.active_keys import find_keys
from seedless.numerics.counter_random import WORD_MASK, philox


def dropout(
    x: Tensor,
    p: float,
    *,
    samples: Tensor,
    epoch: Tensor | int,
    layer: int,
    axis: int = 0,
) -> Tensor:
    """Return x (B, ...) with each element zero with probability p, the others times 1/(1-p).

    ``axis`` is that of the samples. A sample has the same mask wherever its axis is.

    Source: Srivastava et al., JMLR 15, 2014, in the "inverted" form of torch.nn.Dropout.
    """
    check_probability(p)
    axis = _check_axis(axis, x)
    _check_samples(x, axis, samples)
    if p == 0:
        return x
    shape = torch.Size([x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :]])
    keep = keep_mask(shape, p, samples=samples.to(x.device), epoch=epoch, layer=layer)
    if axis:
        keep = keep.movedim(0, axis)
    if p == 1:
        return x * keep
    return x * keep.to(x.dtype) * (1.0 / (1.0 - p))


def keep_mask(
    shape: torch.Size, p: float, *, samples: Tensor, epoch: Tensor | int, layer: int
) -> Tensor:
    """Return the elements to keep as a bool tensor of ``shape`` (B, ...).

    An element is kept where its word of `sample_words` is below (1-p) 2^32.
    """
    words = sample_words(shape[1:].numel(), samples=samples, epoch=epoch, layer=layer)
    return (words < round((1.0 - p) * 2**32)).view(shape)


def sample_words(size: int, *, samples: Tensor, epoch: Tensor | int, layer: int) -> Tensor:
    """Return 32 random bits for each of a sample's elements: int64 (B, size), 0 to 2^32 - 1.

    Those of element e of sample s are word e % 4 of philox((e // 4, l, epoch, h), s), where l and h
    are the low and high 32 bits of the layer's number. `Dropout` has numbers below 2^32; layers
    that have a name, and no number, have larger ones.
    """
    block = torch.arange((size + 3) // 4, device=samples.device)[None, :]
    zero = torch.zeros_like(block)
    last = zero + (layer >> 32) if layer >> 32 else zero
    key = samples[:, None]
    words = philox(
        (block, zero + (layer & WORD_MASK), (zero + epoch) & WORD_MASK, last),
        (key & WORD_MASK, (key >> 32) & WORD_MASK),
    )
    return torch.stack(words, dim=-1).flatten(1)[:, :size]


class Dropout(nn.Module):
    """Dropout as a layer, for use inside `dropout_keys`; it changes nothing in evaluation mode.

    Args:
        p: probability that an element is set to zero.
        layer: a number from 0 to 2^32 - 1, different for each dropout layer of a model, so that
            their masks differ.
        axis: the axis of the samples in the layer's input, 1 for input with time first; by default
            that of `dropout_keys`.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 8), seedless.Dropout(0.5, layer=0))
    """

    def __init__(self, p: float, layer: int, axis: int | None = None) -> None:
        super().__init__()
        check_probability(p)
        check_integer("layer", layer, 0, WORD_MASK, error=NumericsError)
        self.p = p
        self.layer = layer
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Return x with dropout in training mode, and x itself in evaluation mode."""
        if not self.training:
            return x
        samples, epoch, axis, _ = find_keys()
        if self.axis is not None:
            axis = self.axis
        elif axis is None:
            axis = _choose_axis(x, samples)
        return dropout(x, self.p, samples=samples, epoch=epoch, layer=self.layer, axis=axis)

    def extra_repr(self) -> str:
        """Show rate and layer number when the model is printed."""
        axis = "" if self.axis is None else f", axis={self.axis}"
        return f"p={self.p}, layer={self.layer}{axis}"


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


def check_probability(p: float) -> None:
    """Refuse a probability that is not from 0 to 1."""
    if not 0 <= p <= 1:
        raise NumericsError(f"dropout needs a probability from 0 to 1, got {p!r}")


def _choose_axis(x: Tensor, samples: Tensor) -> int:
    """Return axis 0, where nobody gave the axis; refuse input that may have its samples on axis 1.

    Input with time first is (time, B, features): features (B, B) and images (B, B, H, W) are not
    taken for it.
    """
    if x.ndim == 3 and x.shape[0] == x.shape[1] and samples.shape == x.shape[:1]:
        raise NumericsError(
            f"dropout of input of shape {tuple(x.shape)} cannot tell whether it has the samples on "
            "axis 0 or 1 (time first): say it, as Dropout(p, layer=..., axis=0) for one layer or "
            "dropout_keys(samples=..., epoch=..., axis=0) for all"
        )
    return 0


def _check_axis(axis: int, x: Tensor) -> int:
    """Return an axis of x, which may be counted from the end, as a number from 0."""
    if x.ndim == 0:
        raise NumericsError("dropout needs input with an axis of samples, got a single number")
    return check_integer("axis", axis, -x.ndim, x.ndim - 1, error=NumericsError) % x.ndim


def _check_samples(x: Tensor, axis: int, samples: Tensor) -> None:
    if samples.dtype != torch.int64 or samples.shape != x.shape[axis : axis + 1]:
        raise NumericsError(
            "dropout needs one int64 key for each sample: expected shape "
            f"{tuple(x.shape[axis : axis + 1])} for input of shape {tuple(x.shape)} with samples "
            f"on axis {axis}, got {samples.dtype} of shape {tuple(samples.shape)}; input with time "
            "first needs axis=1"
        )
