"""Adaptive average and maximum pooling in two and three dimensions, and their gradients.

Law: an axis is divided into bins that may be uneven, as torch defines them: bin i of n over T
values is [floor(i T / n), ceil((i + 1) T / n)). The values of a bin are compared or added one after
another, in order, in float64. Of equal maxima the first is taken, and a NaN is larger than every
number. One dimension arrives here as two.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from seedless.portable.exact.sums import add_at
from seedless.portable.ops.elementwise import Implementation, shape_along

Sizes = Sequence[int]


def _find_bins(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the indices (size,) of the first and of the last value of each bin."""
    bins = torch.arange(size, device=device)
    return bins * length // size, ((bins + 1) * length - 1) // size


def _sum_bins(x: Tensor, dim: int, size: int) -> Tensor:
    """Return the sums of ``size`` adaptive bins along one axis, each from first to last value.

    The transposed sum, from bins back to values, is this function with the two sizes exchanged:
    value j lies in bin i exactly where i lies in bin j of the exchanged problem.
    """
    length = x.shape[dim]
    first, last = _find_bins(length, size, x.device)
    shape = shape_along(dim, x.ndim)
    out = torch.zeros_like(x.index_select(dim, first))
    # The widest bin has ceil((length + size - gcd) / size) values. A shorter bin reads its last
    # value again, and does not add it.
    for offset in range(-(-(length + size - math.gcd(length, size)) // size)):
        is_inside = (first + offset <= last).view(shape)
        value = x.index_select(dim, torch.minimum(first + offset, last))
        out = torch.where(is_inside, out + value, out)
    return out


def _count_bins(length: int, size: int, x: Tensor, dim: int) -> Tensor:
    """Return the number of values in each bin, in float64, along axis ``dim`` of x."""
    first, last = _find_bins(length, size, x.device)
    return (last - first + 1).to(torch.float64).view(shape_along(dim, x.ndim))


def adaptive_avg_pool(x: Tensor, output: Sizes) -> Tensor:
    """Return the mean of each bin, (..., *output): one axis after another, in float64."""
    out = x.to(torch.float64)
    for axis, size in zip(range(x.ndim - len(output), x.ndim), output, strict=True):
        out = _sum_bins(out, axis, size) / _count_bins(x.shape[axis], size, x, axis)
    return out.to(x.dtype)


def adaptive_avg_pool_backward(grad: Tensor, x: Tensor, dimensions: int) -> Tensor:
    """Return the gradient like x: each value's share of the gradients of its bins."""
    out = grad.to(torch.float64)
    for axis in range(x.ndim - dimensions, x.ndim):
        out = out / _count_bins(x.shape[axis], grad.shape[axis], x, axis)
        out = _sum_bins(out, axis, x.shape[axis])
    return out.to(x.dtype)


def adaptive_max_pool(x: Tensor, output: Sizes) -> tuple[Tensor, Tensor]:
    """Return the maximum of each bin, (..., *output), and its index; the first of equals."""
    n = len(output)
    sizes = x.shape[-n:]
    # [Step 1] Find the bins of each axis, and the widest. It is the length of a loop, so it is
    # computed on the CPU: reading it from a GPU would wait for the GPU.
    pairs = list(zip(sizes, output, strict=True))
    bins = [_find_bins(length, size, x.device) for length, size in pairs]
    on_cpu = [_find_bins(length, size, torch.device("cpu")) for length, size in pairs]
    widest = [int((last - first).max()) + 1 for first, last in on_cpu]
    flat = x.flatten(-n)
    best = best_index = None
    for offsets in itertools.product(*map(range, widest)):
        # [Step 2] Compute the flat index of the value at these offsets from the first of its bin;
        # a shorter bin reads its last value again, which changes no maximum.
        index = torch.zeros([1] * n, dtype=torch.int64, device=x.device)
        for axis, (first, last) in enumerate(bins):
            along = torch.minimum(first + offsets[axis], last)
            index = index * sizes[axis] + along.view(shape_along(axis, n))
        # [Step 3] Keep it where it is larger than all before, or NaN.
        value = flat.index_select(-1, index.flatten()).view(*x.shape[:-n], *output)
        index = index.expand(value.shape)
        is_better = value != value if best is None else (value > best) | (value != value)
        best = value if best is None else torch.where(is_better, value, best)
        best_index = index if best_index is None else torch.where(is_better, index, best_index)
    assert best is not None
    assert best_index is not None
    return best, best_index.contiguous()


def adaptive_max_pool_backward(grad: Tensor, x: Tensor, indices: Tensor, dimensions: int) -> Tensor:
    """Return the gradient like x: that of each maximum added at its index, on its plane's grid."""
    flat = torch.zeros_like(x, memory_format=torch.contiguous_format).flatten(-dimensions)
    index, values = indices.flatten(-dimensions), grad.flatten(-dimensions)
    out = add_at(flat, values, [-1], lambda zeros, q: zeros.scatter_add_(-1, index, q))
    return out.view(x.shape)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_adaptive_avg_pool2d": adaptive_avg_pool,
    "aten::_adaptive_avg_pool3d": adaptive_avg_pool,
    "aten::_adaptive_avg_pool2d_backward": partial(adaptive_avg_pool_backward, dimensions=2),
    "aten::_adaptive_avg_pool3d_backward": partial(adaptive_avg_pool_backward, dimensions=3),
    "aten::adaptive_max_pool2d": adaptive_max_pool,
    "aten::adaptive_max_pool3d": adaptive_max_pool,
    "aten::adaptive_max_pool2d_backward": partial(adaptive_max_pool_backward, dimensions=2),
    "aten::adaptive_max_pool3d_backward": partial(adaptive_max_pool_backward, dimensions=3),
}
