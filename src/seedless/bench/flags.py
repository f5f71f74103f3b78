"""The global torch flags of each way to train; they are restored after its turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from seedless.numerics.determinism import (
    find_precision_setting,
    make_deterministic,
    preserve_flags,
    set_fill_uninitialized_memory,
)

SetFlags = Callable[[], None]


def use_plain_flags(*, threads: int, tf32: bool = True) -> None:
    """Set torch's default flags and autotuning, as most people train.

    By default cuDNN's convolutions may use TF32, and matrix products may not.
    """
    make_deterministic(threads=threads)
    torch.set_deterministic_debug_mode("default")
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = tf32  # before the new settings, as in `make_deterministic`
    for name in ("cudnn", "cudnn.conv", "cudnn.rnn"):
        find_precision_setting(name).fp32_precision = "tf32" if tf32 else "ieee"
    _set_defaults()


def use_published_flags(*, threads: int) -> None:
    """Set the flags of the published work: deterministic, no autotuning, no TF32."""
    make_deterministic(threads=threads)
    _set_defaults()


def use_nondeterministic_flags(*, threads: int) -> None:
    """Set our own flags with deterministic mode off, to measure what the mode itself costs."""
    make_deterministic(threads=threads)
    torch.set_deterministic_debug_mode("default")
    torch.backends.cudnn.deterministic = False


def _set_defaults() -> None:
    """Restore the defaults that `make_deterministic` changes besides determinism and TF32."""
    matmul: Any = torch.backends.cuda.matmul
    matmul.allow_bf16_reduced_precision_reduction = True
    matmul.allow_fp16_reduced_precision_reduction = True
    set_fill_uninitialized_memory(True)


@contextmanager
def run_with_flags(set_flags: SetFlags) -> Iterator[None]:
    """Set flags for the block; afterwards every flag has its earlier value."""
    with preserve_flags():
        set_flags()
        yield
