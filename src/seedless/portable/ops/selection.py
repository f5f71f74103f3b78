"""Sorting, the largest values, packed sequences and evenly spaced values.

Of equal values the first wins; negative zero equals zero; every NaN is one and the largest.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seedless.portable.exact import sums as r
from seedless.portable.ops.elementwise import Implementation
from seedless.portable.ops.scatter_write import write_flat


def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """aten.sort, always stable, so that equal values keep their order on every device."""
    places = torch.sort(_keys(x), dim=dim, descending=descending, stable=True)[1]
    return (x.gather(dim, places) if x.ndim else x.clone()), places


def _keys(x: Tensor) -> Tensor:
    """Return x with positive zeros and one kind of NaN, for comparisons."""
    if not x.is_floating_point():
        return x
    return torch.where(x != x, torch.full_like(x, float("nan")), x + 0.0)


def topk(
    x: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002  # aten's name
) -> tuple[Tensor, Tensor]:
    """Return the first k of a stable sort; they are always sorted."""
    if x.ndim == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, places = sort(x, dim, largest)
    return values.narrow(dim, 0, k).contiguous(), places.narrow(dim, 0, k).contiguous()


def aminmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest; + 0 makes a negative zero positive."""
    dims = r.list_axes(x, dim)
    if not dims:
        return x.clone(), x.clone()
    return x.amin(dims, keepdim) + 0, x.amax(dims, keepdim) + 0


def nansum(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return the sum of all values that are not NaN."""
    return r.total(torch.where(x != x, torch.zeros_like(x), x), dim, keepdim).to(dtype or x.dtype)


def put(x: Tensor, places: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """aten.put; without accumulation the last value written to a place stays."""
    if not accumulate:
        return write_flat(x, places, source)
    if not x.is_floating_point():
        return torch.put(x, places, source, accumulate)
    flat, index = source.reshape(-1), places.reshape(-1)
    return r.add_at(x, flat, [0], lambda out, q: out.put_(index, q, True))


def linspace(start: Any, end: Any, steps: int, **named: Any) -> Tensor:
    """start + (end - start) i / (steps - 1) in float64, the last one exactly the end."""
    first, last = float(start), float(end)
    dtype = named.pop("dtype", None) or torch.get_default_dtype()
    span = last - first
    values = [first + span * i / (steps - 1) for i in range(steps - 1)]
    values = [*values, last if steps > 1 else first] if steps else []
    wide = torch.tensor(values, dtype=torch.float64)
    return wide.to(dtype).to(named.get("device") or "cpu")


def pack(x: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """aten._pack_padded_sequence: each time's rows of the sequences that last so long."""
    x = x.transpose(0, 1) if batch_first else x
    sizes = [sum(length > time for length in lengths.tolist()) for time in range(int(lengths[0]))]
    return torch.cat([x[time, :size] for time, size in enumerate(sizes)]), torch.tensor(sizes)


def pack_backward(grad: Tensor, shape: Sequence[int], sizes: Tensor, batch_first: bool) -> Tensor:
    """Return each row's gradient where the row was taken from."""
    out = grad.new_zeros([shape[1], shape[0], *shape[2:]] if batch_first else list(shape))
    start = 0
    for time, size in enumerate(sizes.tolist()):
        out[time, :size] = grad[start : start + size]
        start += size
    return out.transpose(0, 1) if batch_first else out


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::sort": sort,
    "aten::sort.stable": lambda x, *, stable, dim=-1, descending=False: sort(x, dim, descending),
    "aten::topk": topk,
    "aten::aminmax": aminmax,
    "aten::nansum": nansum,
    "aten::put": put,
    "aten::linspace": linspace,
    "aten::linspace.Tensor_Tensor": linspace,
    "aten::linspace.Tensor_Scalar": linspace,
    "aten::linspace.Scalar_Tensor": linspace,
    "aten::trace": lambda x: r.total(x.diagonal()).to(x.dtype),
    "aten::_pack_padded_sequence": pack,
    "aten::_pack_padded_sequence_backward": pack_backward,
}
