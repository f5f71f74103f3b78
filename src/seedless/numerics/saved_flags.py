"""Put back what a run sets in its caller's process, and keep the caller's modes out of the run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from seedless.numerics.determinism import (
    PRECISION_SETTINGS,
    find_precision_setting,
    flushes_denormals,
)
from seedless.numerics.kernel_choice import read_switches, set_switches


@dataclass(eq=False)
class _Block:
    """A block that preserves flags.

    Attributes:
        flags: what it restores: what it found, or what a block found that ended before it.
        finder: the thread that found them.
        thread: the thread of the block.
    """

    flags: dict[str, Any]
    finder: int = field(default_factory=threading.get_ident)
    thread: int = field(default_factory=threading.get_ident)


_lock = threading.Lock()
_blocks: list[_Block] = []  # of all threads, in the order in which they began


@contextmanager
def preserve_flags() -> Iterator[None]:
    """Restore torch's flags and thread count at the end of a `with` block or decorated function.

    The flags belong to the process. Where blocks of several threads overlap, the last one to end
    restores what the first one found: a run that ends does not change the flags of another.
    """
    import torch

    threads, flush = torch.get_num_threads(), flushes_denormals()  # these belong to the thread
    with _lock:
        block = _Block(_read_flags())
        _blocks.append(block)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flush)
        with _lock:
            _end_block(block)


@contextmanager
def run_by_itself() -> Iterator[None]:
    """Restore flags as `preserve_flags`, and let no mode of the caller hold in the block.

    These modes are autocast, `no_grad`, inference mode and another default dtype than float32: a
    run has its own.
    """
    import torch

    devices = [device for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)]
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(preserve_flags())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in devices:
            stack.callback(torch.set_autocast_enabled, device, True)
            torch.set_autocast_enabled(device, False)
        stack.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float32)
        yield


def _end_block(ended: _Block) -> None:
    """Restore the flags a block found, or leave that to a block of another thread that goes on."""
    place = _blocks.index(ended)
    del _blocks[place]
    later = [block for block in _blocks[place:] if block.thread != ended.thread]
    if later:
        later[0].flags, later[0].finder = ended.flags, ended.finder
    elif {block.thread for block in _blocks} <= {ended.thread, ended.finder}:
        _set_flags(ended.flags)


def _read_flags() -> dict[str, Any]:
    """Return the flags of the process; None for one that torch refuses to read."""
    import torch

    found: dict[str, Any] = {"mode": torch.get_deterministic_debug_mode()}
    # torch refuses to read an older setting where it disagrees with the newer ones.
    found["product"] = found["allow_tf32"] = None
    with suppress(RuntimeError):
        found["product"] = torch.get_float32_matmul_precision()
    with suppress(RuntimeError):
        found["allow_tf32"] = torch.backends.cudnn.allow_tf32
    found["attributes"] = [getattr(owner, name) for owner, name in _list_attributes()]
    return {**found, "switches": read_switches()}


def _set_flags(found: dict[str, Any]) -> None:
    import torch

    torch.set_deterministic_debug_mode(found["mode"])
    # The older settings first, as in `make_deterministic`.
    if found["product"] is not None:
        torch.set_float32_matmul_precision(found["product"])
    if found["allow_tf32"] is not None:
        torch.backends.cudnn.allow_tf32 = found["allow_tf32"]
    for (owner, name), value in zip(_list_attributes(), found["attributes"], strict=True):
        setattr(owner, name, value)
    set_switches(found["switches"])


def _list_attributes() -> list[tuple[Any, str]]:
    """Return the flags that are attributes, in the order in which they are set."""
    import torch

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return [
        (cudnn, "deterministic"),
        (cudnn, "benchmark"),
        *(
            (find_precision_setting(path), "fp32_precision")
            for path in ("", *PRECISION_SETTINGS.values())
        ),
        (matmul, "allow_bf16_reduced_precision_reduction"),
        (matmul, "allow_fp16_reduced_precision_reduction"),
        (torch.utils.deterministic, "fill_uninitialized_memory"),
    ]
