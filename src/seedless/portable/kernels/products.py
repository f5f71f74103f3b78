"""Matrix products on a CPU as one kernel, c/cpu_product.c, and memory that is used again.

New memory costs a CPU more than the arithmetic in it.
"""

import math
import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.context import CONTEXT
from seedless.portable.kernels.launch import is_ready, launch, shape_map
from seedless.portable.kernels.rounding_grids import gather_taps

MAX_BLOCK_ELEMENTS = 1 << 20  # of a transposed convolution's products that are held at a time
MIN_SHARED_PRODUCTS = 1 << 18  # of two numbers, from which threads share a matrix product
BLOCKS_PER_THREAD = 4  # of a result, so that no thread waits long for the last one
MAX_SCRATCH_ELEMENTS = 1 << 23  # of memory that is reused under one name: 64 MiB


class _Scratch(threading.local):
    """Each thread's own memory, by name."""

    def __init__(self) -> None:
        self.memory: dict[str, Tensor] = {}


_SCRATCH = _Scratch()


def get_scratch(name: str, shape: Sequence[int]) -> Tensor:
    """Return float64 memory on the CPU with any content, valid until the next call of this name."""
    size = math.prod(shape)
    if size > MAX_SCRATCH_ELEMENTS:
        return torch.empty(tuple(shape), dtype=torch.float64, device="cpu")
    memory = _SCRATCH.memory.get(name)
    if memory is None or memory.numel() < size:
        memory = _SCRATCH.memory[name] = torch.empty(size, dtype=torch.float64, device="cpu")
    return memory[:size].view(tuple(shape))


def get_float32_scratch(shape: Sequence[int]) -> Tensor:
    """Return float32 memory for the windows of a convolution, valid until the next call."""
    size = math.prod(shape)
    return get_scratch("windows", (-(-size // 2),)).view(torch.float32)[:size].view(tuple(shape))


def _is_used(left: Tensor, right: Tensor, bias: Tensor | None = None) -> bool:
    """Return whether products are computed here: on a CPU, and in float64."""
    if not (left.is_cpu and CONTEXT.multiplies_in_float64(left.device)):
        return False
    return is_ready(left, right, bias)


def multiply(
    left: Tensor, right: Tensor, inner: int = 0, bias: Tensor | None = None
) -> Tensor | None:
    """Return the product of (batch, m, k) and (batch, k, n) in float32; None: no such kernel.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner). ``bias``, (n,),
    is added to the rounded product.
    """
    if not _is_used(left, right, bias):
        return None
    (batch, m, _), n = left.shape, right.shape[2]
    shape = (n // inner, batch * m, inner) if inner else (batch, m, n)
    out = torch.empty(shape, dtype=torch.float32, device="cpu")
    _launch(left, right, bias, out, None, inner)
    return out


def _launch(
    left: Tensor,
    right: Tensor,
    bias: Tensor | None,
    out: Tensor | None,
    whole: Tensor | None,
    inner: int,
) -> None:
    """Multiply into ``out``, float32, or ``whole``, float64."""
    (batch, m, k), n = left.shape, right.shape[2]
    exponents = torch.empty(batch * (m + n), dtype=torch.int64, device="cpu")
    threads = torch.get_num_threads()
    is_shared = threads > 1 and batch * m * k * n >= MIN_SHARED_PRODUCTS
    blocks = BLOCKS_PER_THREAD * threads if is_shared else 1
    launch(
        *("multiply_on_cpu", left.device, shape_map(1), left, right, bias, out, whole, exponents),
        *(batch, m, k, n, inner, *left.stride(), *right.stride(), blocks),
    )


def convolve_transposed(
    filters: Tensor,
    rows: Tensor,
    shape: Sequence[int],
    positions: Sequence[int],
    windows: Sequence[Sequence[int]],
) -> Tensor | None:
    """Return `rounding_grids.gather_taps` of the product of (groups, m taps, k) and rows.

    ``rows`` are (groups, k, samples x positions); some samples are computed at a time.
    """
    if not _is_used(filters, rows):
        return None
    (groups, m, _), samples = filters.shape, shape[0]
    each = rows.shape[2] // samples
    out = torch.empty(tuple(shape), dtype=torch.float32, device="cpu")
    step = max(1, MAX_BLOCK_ELEMENTS // (groups * m * each))
    for first in range(0, samples, step):
        block = out[first : first + step]
        columns = rows[:, :, first * each : (first + len(block)) * each]
        products = get_scratch("products", (groups, m, columns.shape[2]))
        _launch(filters, columns, None, None, products, 0)
        sizes = (len(block), *shape[1:])
        gather_taps((products, None), None, sizes, positions, windows, groups, block)
    return out
