"""The flags a run sets in its process, put back after it: what calls us finds them as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Any

from seedless.numerics.environment import fill_fresh_memory, flushes_denormals

# Every place torch keeps a float32 precision: the whole before its parts, which follow it.
PRECISIONS = (
    *("", "mkldnn", "cudnn", "cuda.matmul", "cudnn.conv", "cudnn.rnn"),
    *("mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn"),
)


@contextmanager
def keep_flags() -> Iterator[None]:
    """Let threads and flags change within, and be afterwards what they were; also a decorator."""
    import torch

    matmul: Any = torch.backends.cuda.matmul
    deterministic: Any = torch.utils.deterministic
    cudnn: Any = torch.backends.cudnn
    threads, product = torch.get_num_threads(), torch.get_float32_matmul_precision()
    mode = torch.get_deterministic_debug_mode()
    chosen = (cudnn.deterministic, cudnn.benchmark)
    old_switch = None
    with suppress(RuntimeError):  # raised where someone set it and the new ones to disagree
        old_switch = cudnn.allow_tf32
    precisions = {name: find_precision(name).fp32_precision for name in PRECISIONS}
    reduced = (
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
    )
    filled, flushed = deterministic.fill_uninitialized_memory, flushes_denormals()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(mode)
        cudnn.deterministic, cudnn.benchmark = chosen
        torch.set_float32_matmul_precision(product)  # before the new switches, as in `settle`
        if old_switch is not None:
            cudnn.allow_tf32 = old_switch
        for name, value in precisions.items():
            find_precision(name).fp32_precision = value
        matmul.allow_bf16_reduced_precision_reduction = reduced[0]
        matmul.allow_fp16_reduced_precision_reduction = reduced[1]
        fill_fresh_memory(filled)
        torch.set_flush_denormal(flushed)


def find_precision(name: str) -> Any:
    """Return what holds a precision, by its name in `PRECISIONS`."""
    import torch

    return attrgetter(name)(torch.backends) if name else torch.backends
