"""Writing values to places: of several written to one place the last stays.

Torch leaves open which one does, and it is another with another number of threads. The last is
found with a maximum over integers, which no order can change.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.ops.elementwise import Implementation


def _find_last(places: Tensor, size: int) -> Tensor:
    """Return for each of ``size`` places the number of the last write to it, or -1."""
    numbers = torch.arange(len(places), device=places.device)
    none = torch.full((size,), -1, device=places.device)
    return none.scatter_reduce_(0, places, numbers, "amax")


def write_flat(x: Tensor, places: Tensor, source: Tensor) -> Tensor:
    """aten.put without accumulation: places count through x in order, from the end if negative."""
    if not places.numel():
        return x.clone()
    flat = places.reshape(-1)
    last = _find_last(torch.where(flat < 0, flat + x.numel(), flat), x.numel())
    found = source.reshape(-1).index_select(0, last.clamp(min=0))
    return torch.where(last < 0, x.reshape(-1), found).view(x.shape)


def write_at(x: Tensor, index: Sequence[Tensor | None], values: Tensor) -> Tensor:
    """aten.index_put without accumulation."""
    chosen = [
        one for one in index if one is not None and one.dtype not in (torch.bool, torch.uint8)
    ]
    if values.numel() == 1 or all(one.numel() <= 1 for one in chosen):  # no two can disagree
        out: Tensor = torch.ops.aten.index_put_(x.clone(), list(index), values)
        return out
    numbers = torch.arange(x.numel(), device=x.device).view(x.shape)
    places = torch.ops.aten.index(numbers, list(index))
    return write_flat(x, places, values.expand(places.shape))


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """aten.index_copy."""
    if not x.ndim or not index.numel():
        return torch.index_copy(x, dim, index, source)
    last = _find_last(index.reshape(-1), x.shape[dim])
    found = source.index_select(dim, last.clamp(min=0))
    shape = [-1 if axis == dim % x.ndim else 1 for axis in range(x.ndim)]
    return torch.where(last.view(shape) < 0, x, found)


def scatter(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """aten.scatter with values to write."""
    if not x.ndim or not index.numel():
        return torch.scatter(x, dim, index, source)
    dim %= x.ndim
    inner = tuple(slice(size) for size in index.shape)
    box = tuple(slice(None) if axis == dim else size for axis, size in enumerate(inner))
    shape = [-1 if axis == dim else 1 for axis in range(x.ndim)]
    numbers = torch.arange(index.shape[dim], device=x.device).view(shape).expand(index.shape)
    out = x.clone(memory_format=torch.contiguous_format)
    none = torch.full(out[box].shape, -1, device=x.device)
    last = none.scatter_reduce_(dim, index, numbers, "amax")
    found = source[inner].gather(dim, last.clamp(min=0))
    out[box] = torch.where(last < 0, out[box], found)
    return out


def scatter_number(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    """aten.scatter with one number to write: no order can change the result."""
    return torch.scatter(x, dim, index, value)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::index_copy": index_copy,
    "aten::scatter.src": scatter,
    "aten::scatter.value": scatter_number,
}
