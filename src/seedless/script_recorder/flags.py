"""Switches of torch that change results, as plain values."""

from __future__ import annotations

import sys
from typing import Any

import torch

_cuda: Any = torch.cuda  # untyped in torch
_deterministic: Any = torch.utils.deterministic


def read_flags() -> dict[str, Any]:
    """Return the switches that hold now."""
    flags: dict[str, Any] = {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "fill_uninitialized_memory": _deterministic.fill_uninitialized_memory,
        "cudnn.enabled": torch.backends.cudnn.enabled,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "mkldnn.enabled": torch._C._get_mkldnn_enabled(),
        "default_dtype": str(torch.get_default_dtype()),
        "threads": torch.get_num_threads(),
        "compiled": _has_compiled(),
    }
    flags.update(_read_precision())
    return flags


def is_cuda_used() -> bool:
    """Return whether the script has used the GPU; to ask for devices earlier breaks a fork."""
    return bool(_cuda.is_initialized())


def read_autocast() -> dict[str, Any]:
    """Return the dtype autocast uses on the CPU and on the GPU at this moment, or False."""
    return {f"autocast_{device}": _read_autocast_of(device) for device in ("cpu", "cuda")}


def _read_autocast_of(device: str) -> str | bool:
    if hasattr(torch, "get_autocast_dtype"):
        enabled = torch.is_autocast_enabled(device)
        return enabled and str(torch.get_autocast_dtype(device))
    before: Any = torch  # 2.3 and older had a pair of functions for each device
    if device == "cpu":
        return before.is_autocast_cpu_enabled() and str(before.get_autocast_cpu_dtype())
    return before.is_autocast_enabled() and str(before.get_autocast_gpu_dtype())


def keep_deterministic() -> None:
    """Use deterministic algorithms from now on, whatever the script says; for experiments."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False

    def ignore(*args: Any, **kwargs: Any) -> None:
        """Leave the switch as the experiment needs it."""

    switches: Any = torch
    switches.use_deterministic_algorithms = ignore
    switches.set_deterministic_debug_mode = ignore
    switches._C._set_cudnn_deterministic = ignore
    switches._C._set_cudnn_benchmark = ignore
    # The attributes of torch.backends.cudnn keep the functions they were made with.
    attributes = vars(type(torch.backends.cudnn))
    for name in ("deterministic", "benchmark"):
        if hasattr(attributes.get(name), "setter"):
            attributes[name].setter = ignore


def _read_precision() -> dict[str, Any]:
    """Return what the matrix products of float32 may round; a new torch refuses a mixed setting."""
    try:
        return {
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "tf32.matmul": torch.backends.cuda.matmul.allow_tf32,
            "tf32.cudnn": torch.backends.cudnn.allow_tf32,
        }
    except RuntimeError:
        return {
            "float32_matmul_precision": "set by the new interface",
            "tf32.matmul": torch.backends.cuda.matmul.fp32_precision,
            "tf32.cudnn": torch.backends.cudnn.fp32_precision,
        }


def _has_compiled() -> bool:
    """Return whether torch.compile has compiled anything in this process."""
    utilities: Any = sys.modules.get("torch._dynamo.utils")
    return utilities is not None and utilities.counters["stats"]["unique_graphs"] > 0
