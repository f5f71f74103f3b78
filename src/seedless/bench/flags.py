"""The global torch flags of each way to train; they are restored after its turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from seedless.numerics.determinism import (
    find_precision_setting,
    make_deterministic,
    set_fill_uninitialized_memory,
)
from seedless.numerics.saved_flags import preserve_flags
from seedless.train.step_modes import preserve_compiler_settings

SetFlags = Callable[[], None]
TORCH_DEFAULT = "torch's default"  # a precision: TF32 in convolutions alone


def use_plain_flags(*, threads: int, precision: str = TORCH_DEFAULT) -> None:
    """Set torch's default flags and autotuning, as most people train.

    Args:
        threads: of torch's CPU operations.
        precision: "fp32" allows TF32 nowhere, "tf32" in convolutions and matrix products. By
            default, and with "bf16", cuDNN's convolutions may use TF32 and matrix products may not.
    """
    make_deterministic(threads=threads, tf32=precision == "tf32")
    torch.set_deterministic_debug_mode("default")
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    convolutions = "ieee" if precision == "fp32" else "tf32"
    # Before the new settings, as in `make_deterministic`.
    torch.backends.cudnn.allow_tf32 = convolutions == "tf32"
    for name in ("cudnn", "cudnn.conv", "cudnn.rnn"):
        find_precision_setting(name).fp32_precision = convolutions
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
    """Set flags for the block; afterwards every flag has its earlier value.

    So have the settings of torch's compiler, which our compiled step changes: the plain compiled
    step must have torch's own.
    """
    with preserve_flags(), preserve_compiler_settings():
        set_flags()
        yield
