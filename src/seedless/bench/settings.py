"""The global flags each side runs under, set for its turn and put back after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import torch

from seedless.numerics.environment import fill_fresh_memory, settle

Settle = Callable[[], None]

# Every place torch keeps a float32 precision: the whole before its parts, which follow it.
PRECISIONS = (
    *("", "mkldnn", "cudnn", "cuda.matmul", "cudnn.conv", "cudnn.rnn"),
    *("mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn"),
)


def settle_plain(*, threads: int, tf32: bool = True) -> None:
    """Set what torch comes with, and autotuning, as most people train.

    By default cuDNN's convolutions may use TF32, and matrix products may not.
    """
    settle(threads=threads)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    for name in ("cudnn", "cudnn.conv", "cudnn.rnn"):
        _precision(name).fp32_precision = "tf32" if tf32 else "ieee"
    _set_defaults()


def settle_published(*, threads: int) -> None:
    """Set what the published work trained under: deterministic, no autotuning, no TF32."""
    settle(threads=threads)
    _set_defaults()


def settle_loosely(*, threads: int) -> None:
    """Set what ours runs under, with deterministic mode off: what does the mode itself cost?"""
    settle(threads=threads)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False


def _set_defaults() -> None:
    """Put back what `settle` changes of torch's defaults beside determinism and TF32."""
    matmul: Any = torch.backends.cuda.matmul
    matmul.allow_bf16_reduced_precision_reduction = True
    matmul.allow_fp16_reduced_precision_reduction = True
    fill_fresh_memory(True)


@contextmanager
def run_under(settle_side: Settle) -> Iterator[None]:
    """Run a turn under one side's flags; afterwards every flag is what it was."""
    matmul: Any = torch.backends.cuda.matmul
    fill: Any = torch.utils.deterministic
    threads, product = torch.get_num_threads(), torch.get_float32_matmul_precision()
    enabled = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark)
    precisions = {name: _precision(name).fp32_precision for name in PRECISIONS}
    reduced = (
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
    )
    filled = fill.fill_uninitialized_memory
    try:
        settle_side()
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(enabled, warn_only=warn)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn
        torch.set_float32_matmul_precision(product)  # before the switches, as in `settle`
        for name, value in precisions.items():
            _precision(name).fp32_precision = value
        matmul.allow_bf16_reduced_precision_reduction = reduced[0]
        matmul.allow_fp16_reduced_precision_reduction = reduced[1]
        fill.fill_uninitialized_memory = filled


def _precision(name: str) -> Any:
    return attrgetter(name)(torch.backends) if name else torch.backends
