"""Draws for the samples of a batch, as pure functions of sample, epoch, layer and element.

What is drawn for has the samples along one of its axes. They may be k times as many as the keys:
then an axis holds k parts of each sample, one sample after the other, as windows of an image or
heads of an attention do.

A draw that all samples share, such as that of LayerDrop, depends on epoch and step. So does one for
which someone said that they share it, with the axis `SHARED`.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.core.threads import run_in_blocks
from seedless.numerics.active_keys import BatchKeys, find_keys
from seedless.numerics.counter_random import WORD_MASK, philox_array
from seedless.numerics.draw_line import find_line
from seedless.numerics.dropout import check_probability, sample_words
from seedless.numerics.forward_calls import find_call
from seedless.numerics.normal_quantile import compute_log, normal_quantile

Axis = int | Literal["shared"] | None
SHARED: Literal["shared"] = "shared"
_CHUNK = 4096  # counters for which words are computed at a time: they stay in a processor's cache
# Bits after the binary point that numbers of a type in [0, 1) have.
_UNIFORM_BITS = {torch.float64: 32, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
# The value that SELU approaches for large negative inputs: -lambda alpha.
# Source: Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
_SELU_LIMIT = -1.7580993408473766


def drop(
    x: Tensor,
    p: float,
    *,
    layer: int,
    axis: Axis = None,
    features: bool = False,
    alpha: bool = False,
    module: str | None = None,
) -> Tensor:
    """Return x with elements dropped with probability p, by the keys that are set.

    Args:
        x: input with the samples on an axis.
        p: probability that an element is dropped.
        layer: the number of the layer, from `forward_calls`.
        axis: the axis of the samples; by default it is found by its size. `SHARED`: all samples
            share the draw.
        features: drop whole channels (B, C), as nn.Dropout1d, 2d and 3d do.
        alpha: drop to SELU's limit and keep mean and variance, as nn.AlphaDropout does.
        module: the name of the module that draws, for an error; by default the innermost one whose
            call lasts.
    """
    check_probability(p)
    if p == 0:
        return x
    if p == 1:
        return x * 0.0
    shape = x.shape
    if features:
        if x.ndim < 2:
            raise NumericsError(
                "dropout of channels needs input of shape (samples, channels, ...), got "
                f"{tuple(x.shape)}"
            )
        shape = torch.Size([*x.shape[:2], *[1] * (x.ndim - 2)])
    words = draw_words(shape, layer=layer, axis=axis, device=x.device, module=module)
    keep = words < round((1.0 - p) * 2**32)
    kept = keep.to(x.dtype)
    if not alpha:
        return x * kept * (1.0 / (1.0 - p))
    scale = 1.0 / sqrt((1.0 - p) * (1.0 + p * _SELU_LIMIT**2))
    return (x * kept + (1.0 - kept) * _SELU_LIMIT) * scale - scale * _SELU_LIMIT * p


def draw_uniform_like(x: Tensor, *, layer: int, axis: Axis = None) -> Tensor:
    """Return numbers in [0, 1) of the shape and type of x, by the keys that are set."""
    bits = _find_bits(x)
    words = draw_words(x.shape, layer=layer, axis=axis, device=x.device)
    return (words >> (32 - bits)).to(x.dtype) * 2.0**-bits


def draw_normal_like(x: Tensor, *, layer: int, axis: Axis = None) -> Tensor:
    """Return normal numbers of the shape and type of x, by the keys that are set.

    They are the quantiles of (word + 1/2) / 2^32, so that none is beyond +-6.4. A CPU computes
    them, so that every device has the same bits.
    """
    return _transform_words(x, normal_quantile, layer, axis)


def draw_exponential_like(x: Tensor, *, layer: int, axis: Axis = None) -> Tensor:
    """Return exponential numbers of rate 1, of the shape and type of x, by the keys that are set.

    They are -log((word + 1/2) / 2^32), at most 22.9, computed by a CPU.
    """
    return _transform_words(x, lambda unit: -compute_log(unit), layer, axis)


def _transform_words(
    x: Tensor,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    layer: int,
    axis: Axis,
) -> Tensor:
    """Return a function of uniform numbers strictly between 0 and 1, like x."""
    _find_bits(x)
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise NumericsError(
            f"module {find_call().name!r} draws normal or exponential numbers at {find_line()}, "
            "which a CPU computes, and a step captured as a CUDA graph cannot wait for it: use "
            "execution.mode='eager', or draw them from torch.rand"
        )
    words = draw_words(x.shape, layer=layer, axis=axis, device=x.device).cpu().numpy()
    return torch.from_numpy(function((words + 0.5) * 2.0**-32)).to(x.device, x.dtype)


def _find_bits(x: Tensor) -> int:
    """Return how many bits after the binary point a uniform number of x's type has."""
    bits = _UNIFORM_BITS.get(x.dtype)
    if bits is None:
        raise NumericsError(f"expected a type of real numbers to draw, got {x.dtype}")
    return bits


def draw_words(
    shape: Sequence[int],
    *,
    layer: int,
    axis: Axis,
    device: torch.device,
    module: str | None = None,
) -> Tensor:
    """Return 32 random bits for each element of a shape, by the keys that are set: int64."""
    keys = find_keys()
    said = keys.axis if axis is None else axis
    place = _find_axis(tuple(shape), len(keys.samples), said, module)
    if place is None:
        words = _draw(torch.Size(shape).numel(), _batch_key(keys).to(device), keys.epoch, layer)
        return words.reshape(torch.Size(shape))
    # [Step 1] Put the samples first, with the parts of a sample on an axis behind them.
    batch = len(keys.samples)
    rest = [*shape[:place], *shape[place + 1 :]]
    first = [batch, shape[place] // batch, *rest]
    # [Step 2] Draw for each sample's elements.
    size = torch.Size(first[1:]).numel()
    words = _draw(size, keys.samples.to(device), keys.epoch, layer)
    # [Step 3] Put the axes back.
    return words.reshape(shape[place], *rest).movedim(0, place)


def _draw(size: int, samples: Tensor, epoch: Tensor | int, layer: int) -> Tensor:
    """Return `sample_words`, on a CPU in numpy, which is 4 to 20 times as fast as torch there."""
    on_cpu = samples.device.type == "cpu" and samples.dtype == torch.int64
    if torch.compiler.is_compiling():
        return sample_words(size, samples=samples, epoch=epoch, layer=layer)
    if not on_cpu:
        with torch._C.DisableTorchFunction():  # a function mode that looks on takes a third more
            return sample_words(size, samples=samples, epoch=epoch, layer=layer)
    keys = samples.numpy().view(np.uint64)[:, None]
    blocks = (size + 3) // 4
    words = np.empty((len(keys), blocks, 4), dtype=np.int64)
    number, period, last = (
        np.array([[word & WORD_MASK]], np.uint64) for word in (layer, int(epoch), layer >> 32)
    )

    def fill(part: slice) -> None:
        low, high = keys[part] & np.uint64(WORD_MASK), keys[part] >> np.uint64(32)
        for start in range(0, blocks, _CHUNK):
            block = np.arange(start, min(start + _CHUNK, blocks), dtype=np.uint64)[None]
            place = words[part, start : start + _CHUNK]
            for index, word in enumerate(philox_array((block, number, period, last), (low, high))):
                place[..., index] = word

    run_in_blocks(fill, len(keys), max(1, _CHUNK // max(1, blocks)))
    return torch.from_numpy(words).view(len(keys), -1)[:, :size]


def _batch_key(keys: BatchKeys) -> Tensor:
    """Return the key of what all samples share: the step, or else the sum of the keys: (1,)."""
    if keys.step is None:
        return keys.samples.sum().view(1)  # modulo 2^64, in whatever order
    return torch.as_tensor(keys.step, dtype=torch.int64, device=keys.samples.device).view(1)


def _find_axis(shape: tuple[int, ...], batch: int, axis: Axis, module: str | None) -> int | None:
    """Return the axis of the samples, or None for a draw that all samples share."""
    # [Step 1] Someone said it.
    if axis == SHARED:
        return None
    if axis is not None:
        if -len(shape) <= axis < len(shape) and shape[axis] % batch == 0 and shape[axis]:
            return axis % len(shape)
        raise _refuse(module, shape, batch, f"with samples on axis {axis}")
    # [Step 2] A single number, or one row for all samples.
    if not shape or (shape[0] == 1 and batch > 1):
        return None
    # [Step 3] Samples, or parts of them, are on axis 0. They may be on axis 1 (time first).
    leading = shape[0] % batch == 0 and shape[0] > 0
    time_first = len(shape) >= 3 and shape[1] == batch and batch > 1
    surely_leading = shape[0] == batch and len(shape) > 3
    if leading and time_first and not surely_leading:
        raise _refuse(
            module, shape, batch, "which may have its samples on axis 0 or 1 (time first)"
        )
    if leading:
        return 0
    if time_first:
        return 1
    raise _refuse(module, shape, batch, "of which no axis is that of the samples")


def _refuse(module: str | None, shape: tuple[int, ...], batch: int, what: str) -> NumericsError:
    name = find_call().name if module is None else module
    return NumericsError(
        f"module {name!r} draws at {find_line()} for an input of shape {shape}, {what}, in a batch "
        f"of {batch} samples, one for each key. Say which axis it is: seedless.convert(model, "
        f"axes={{{name!r}: 0}}), or 1 with time first, or 'shared' for one draw that all samples "
        "share. The name of a module holds for all modules inside it"
    )
