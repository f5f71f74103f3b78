"""A record of everything outside the code that changes bits.

Versions, processor, devices, thread counts, torch's flags and environment variables, as plain
values that a receipt can hold. `determinism.py` sets what is recorded here.
"""

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from seedless.core.threads import count_usable_cores
from seedless.numerics.determinism import (
    PRECISION_SETTINGS,
    find_precision_setting,
    flushes_denormals,
)

# Variables that change thread counts, instruction sets, precisions or algorithms.
VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "DNNL_MAX_CPU_ISA",
    "KMP_DETERMINISTIC_REDUCTION",
    "MKL_CBWR",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_NUM_THREADS",
    "NPY_DISABLE_CPU_FEATURES",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_DYNAMIC",
    "OMP_NUM_THREADS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCHINDUCTOR_FREEZING",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
)

PACKAGES = ("numpy", "scipy", "mpmath", "safetensors", "triton")


def capture_environment() -> dict[str, Any]:
    """Return versions, processor, devices, threads, flags and variables as plain values.

    Example:
        >>> capture_environment()["threads"]
        {'intraop': 2, 'interop': 2}
    """
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": _capture_packages(),
        "cpu": _capture_cpu(),
        "devices": _capture_devices(),
        "threads": _capture_threads(),
        "flags": _capture_flags(),
        "precision": {
            name: find_precision_setting(path).fp32_precision
            for name, path in PRECISION_SETTINGS.items()
        },
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _capture_packages() -> dict[str, str]:
    """Return versions without importing the packages; torch's own version also names its build."""
    import torch

    versions = {"torch": str(torch.__version__)}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _capture_cpu() -> dict[str, Any]:
    import torch

    return {
        "model": read_cpu_model(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "cores": count_usable_cores(),
        "mkl": torch.backends.mkl.is_available(),  # type: ignore[no-untyped-call]  # untyped in torch
        "onednn": torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]  # untyped in torch
        "blas": _find_blas_lines(torch.__config__.show()),
    }


def _capture_devices() -> list[dict[str, Any]]:
    import torch

    if not torch.cuda.is_available():
        return []
    devices = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(
            {
                "name": properties.name,
                "capability": f"{properties.major}.{properties.minor}",
                "multiprocessors": properties.multi_processor_count,
                "memory_bytes": properties.total_memory,
                "cuda": torch.version.cuda,
                "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]  # untyped in torch
            }
        )
    return devices


def _capture_threads() -> dict[str, int]:
    import torch

    return {"intraop": torch.get_num_threads(), "interop": torch.get_num_interop_threads()}


def _capture_flags() -> dict[str, bool]:
    import torch

    matmul = torch.backends.cuda.matmul
    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "bf16_reduced_precision": bool(matmul.allow_bf16_reduced_precision_reduction),
        "fp16_reduced_precision": bool(matmul.allow_fp16_reduced_precision_reduction),
        # A property of the module object, which its stubs do not list.
        "fill_uninitialized_memory": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "flush_denormal": flushes_denormals(),
    }


def read_cpu_model() -> str:
    """Return the name of this machine's processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _find_blas_lines(build: str) -> list[str]:
    """Return the lines of torch's build description that name a math library and its version."""
    wanted = ("Math Kernel Library Version", "MKL-DNN v", "OpenBLAS")
    return [line.strip(" -") for line in build.splitlines() if any(w in line for w in wanted)]
