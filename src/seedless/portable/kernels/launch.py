"""Whether fused kernels are used, and how one is launched."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from seedless.portable.context import CONTEXT
from seedless.portable.kernels.cpu import Library, Work, load_library
from seedless.portable.kernels.cuda import Module, load_module

THREADS = 256
BLOCKS = 4096  # a GPU's, at most, for what one block can take up after another
MOST = 1 << 20  # the same, for rows
SHORT = 512  # elements of a row that one warp goes over
WARPS = 8  # of a block, each with a row
DEEP = 16  # threads of a block that share a column, as columns.c has it


def find_kernels(device: torch.device) -> Library | Module | None:
    """Return the compiled kernels for a device, or None where it has none."""
    return _load(device) if CONTEXT.allows_kernels(device) else None


def _load(device: torch.device) -> Library | Module | None:
    if device.type == "cpu":
        return load_library()
    if device.type == "cuda":
        return load_module(torch.cuda.current_device() if device.index is None else device.index)
    return None


def is_ready(first: Tensor, *others: Tensor | None) -> bool:
    """Return whether kernels take these: float32, not empty, on one device that has kernels."""
    return (
        first.numel() > 0
        and all(
            x is None or (is_plain(x) and x.dtype == torch.float32 and x.device == first.device)
            for x in (first, *others)
        )
        and find_kernels(first.device) is not None
    )


def is_plain(x: Tensor) -> bool:
    """Return whether a tensor is memory and strides: not fake, wrapped, nested or sparse."""
    return type(x) in (Tensor, Parameter) and x.layout == torch.strided


def launch(name: str, device: torch.device, work: Work, *args: Any) -> None:
    """Run a kernel of `kernels/`; ``work`` is what `map_work` and its kin return."""
    kernels = _load(device)  # whoever asked has begun, though others may stop their use meanwhile
    assert kernels is not None
    kernels.launch(name, work, args)


def map_work(size: int) -> Work:
    """Return how a GPU shares a MAP."""
    return Work(min(-(-size // THREADS), BLOCKS), 1, THREADS, 1)


def row_work(rows: int, length: int) -> Work:
    """Return the same for ROWS of a length: a warp for each, or for long ones a block."""
    if length <= SHORT:
        return Work(min(-(-rows // WARPS), MOST), 1, 32, WARPS)
    threads = 128
    while threads < 512 and threads * 4 < length:
        threads *= 2
    return Work(min(rows, MOST), 1, threads, 1)


def column_work(columns: int, rows: int) -> Work:
    """Return the same for columns, 32 a block, which blocks share where there are few."""
    across = min(-(-columns // 32), BLOCKS)
    return Work(across, max(1, min(rows // (16 * DEEP), BLOCKS // across, 256)), 32, DEEP)
