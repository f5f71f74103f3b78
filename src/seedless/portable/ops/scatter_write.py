"""Values written at indices; where several are written at one index, the last one is kept.

Law: writes are numbered in the order of the source. Torch leaves open which write is the last, and
it depends on the number of threads. Here the number of the last write at each index is a maximum of
integers, which no order can change; then each element of the result reads the value of that write.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.ops.elementwise import Implementation, shape_along


def _find_last_writes(index: Tensor, size: int) -> Tensor:
    """Return (size,): the number of the last write at each index, or -1 where there is none."""
    numbers = torch.arange(len(index), device=index.device)
    none = torch.full((size,), -1, device=index.device)
    return none.scatter_reduce_(0, index, numbers, "amax")


def write_flat(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    """Return x with ``source`` written at indices of the flattened x, negative ones from its end.

    This is aten.put without accumulation.
    """
    if not index.numel():
        return x.clone()
    flat = index.reshape(-1)
    last = _find_last_writes(torch.where(flat < 0, flat + x.numel(), flat), x.numel())
    written = source.reshape(-1).index_select(0, last.clamp(min=0))
    return torch.where(last < 0, x.reshape(-1), written).view(x.shape)


def write_at(x: Tensor, index: Sequence[Tensor | None], values: Tensor) -> Tensor:
    """Return x with ``values`` written at an index: aten.index_put without accumulation."""
    # [Step 1] Where no index can occur twice with two values, torch's own op has one result.
    # A mask has each index once.
    integers = [
        one for one in index if one is not None and one.dtype not in (torch.bool, torch.uint8)
    ]
    if values.numel() == 1 or all(one.numel() <= 1 for one in integers):
        out: Tensor = torch.ops.aten.index_put_(x.clone(), list(index), values)
        return out
    # [Step 2] Else let the index read flat indices, and write there.
    flat_indices = torch.arange(x.numel(), device=x.device).view(x.shape)
    targets = torch.ops.aten.index(flat_indices, list(index))
    return write_flat(x, targets, values.expand(targets.shape))


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return x with the slices of ``source`` written at ``index`` of axis ``dim``."""
    if not x.ndim or not index.numel():
        return torch.index_copy(x, dim, index, source)
    last = _find_last_writes(index.reshape(-1), x.shape[dim])
    written = source.index_select(dim, last.clamp(min=0))
    return torch.where(last.view(shape_along(dim % x.ndim, x.ndim)) < 0, x, written)


def scatter(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return x with each value of ``source`` written at its index of axis ``dim``."""
    if not x.ndim or not index.numel():
        return torch.scatter(x, dim, index, source)
    dim %= x.ndim
    # [Step 1] The index may be smaller than x: find the region it can write to, all of axis dim.
    source_region = tuple(slice(size) for size in index.shape)
    region = tuple(slice(None) if axis == dim else size for axis, size in enumerate(source_region))
    # [Step 2] Number the writes along the axis, and find the last at each index.
    numbers = torch.arange(index.shape[dim], device=x.device).view(shape_along(dim, x.ndim))
    out = x.clone(memory_format=torch.contiguous_format)
    none = torch.full(out[region].shape, -1, device=x.device)
    last = none.scatter_reduce_(dim, index, numbers.expand(index.shape), "amax")
    # [Step 3] Read the values of those writes.
    written = source[source_region].gather(dim, last.clamp(min=0))
    out[region] = torch.where(last < 0, out[region], written)
    return out


def scatter_number(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    """Return x with one number written at all indices: no order can change the result."""
    return torch.scatter(x, dim, index, value)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::index_copy": index_copy,
    "aten::scatter.src": scatter,
    "aten::scatter.value": scatter_number,
}
