"""Everything outside the code that changes bits: set in one place, captured in one record.

On a CPU the thread count is what matters most, and engines change it silently through
OMP_NUM_THREADS; an explicit `torch.set_num_threads` wins, so `settle` always makes that call.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from seedless.core.errors import NumericsError

# cuBLAS keeps its results reproducible only with a workspace of fixed size.
CUBLAS_WORKSPACE = ":4096:8"

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


def prepare_process() -> None:
    """Set what libraries read only once, when they are loaded: call it before importing torch.

    Passive waiting keeps two threads on busy cores from spinning against each other; it changes
    speed and no bits.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)


def make_deterministic(*, threads: int | None = None, tf32: bool = False) -> None:
    """Set every deterministic flag, and the thread count (all usable cores unless given)."""
    import torch

    count = usable_cores() if threads is None else threads
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise NumericsError(f"threads is a whole number of at least 1, got {threads!r}")
    workspace = os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)
    if workspace not in (":4096:8", ":16:8"):
        raise NumericsError(
            f"CUBLAS_WORKSPACE_CONFIG is {workspace!r}, with which cuBLAS is not reproducible: "
            f"unset it or set it to {CUBLAS_WORKSPACE}"
        )
    torch.set_num_threads(count)
    # use_deterministic_algorithms(True), without its import of the compiler: 1.6 s of every start.
    torch.set_deterministic_debug_mode("error")
    # Filling fresh memory costs a kernel an allocation, and nothing here reads it before writing:
    # tests/train/test_memory.py runs with several fillings and finds the same bits.
    fill_fresh_memory(False)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    # The old switches first, then the new ones: torch keeps both, and refuses to say anything of
    # an old one where they disagree.
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    for name, switch in _precision_switches().items():
        switch.fp32_precision = "tf32" if tf32 and name.startswith("cud") else "ieee"
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.set_flush_denormal(False)


def fill_fresh_memory(wanted: bool) -> None:
    """Have deterministic mode fill memory that no one has written to yet, or not."""
    import torch

    # A property of the module object, which its stubs do not list.
    torch.utils.deterministic.fill_uninitialized_memory = wanted  # type: ignore[attr-defined]


def _precision_switches() -> dict[str, Any]:
    """Every place where torch keeps a float32 precision, by name; those of CUDA first."""
    from torch import backends

    # The stubs do not list what these modules make at import.
    return {
        "cuda matmul": backends.cuda.matmul,
        "cudnn": backends.cudnn,
        "cudnn conv": backends.cudnn.conv,  # type: ignore[attr-defined]
        "cudnn rnn": backends.cudnn.rnn,
        "onednn": backends.mkldnn,
        "onednn matmul": backends.mkldnn.matmul,  # type: ignore[attr-defined]
        "onednn conv": backends.mkldnn.conv,  # type: ignore[attr-defined]
        "onednn rnn": backends.mkldnn.rnn,  # type: ignore[attr-defined]
    }


def usable_cores() -> int:
    """Return the number of cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def capture() -> dict[str, Any]:
    """Return versions, processor, devices, threads, flags and variables as plain values."""
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
            name: switch.fp32_precision for name, switch in _precision_switches().items()
        },
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _capture_packages() -> dict[str, str]:
    """Versions, without importing what is not imported already; torch's own names its build."""
    import torch

    found = {"torch": str(torch.__version__)}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _capture_cpu() -> dict[str, Any]:
    import torch

    return {
        "model": _cpu_model(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "cores": usable_cores(),
        "mkl": torch.backends.mkl.is_available(),  # type: ignore[no-untyped-call]  # untyped in torch
        "onednn": torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]  # untyped in torch
        "blas": _blas(torch.__config__.show()),
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
        "fill_uninitialized_memory": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "flush_denormal": flushes_denormals(),
    }


def flushes_denormals() -> bool:
    """Say whether half the smallest normal float32 becomes zero: torch has no getter for it."""
    import torch

    return float(torch.full((1,), 2.0**-126) * 0.5) == 0.0


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _blas(build: str) -> list[str]:
    """Return the lines of torch's build description that name a math library and its version."""
    wanted = ("Math Kernel Library Version", "MKL-DNN v", "OpenBLAS")
    return [line.strip(" -") for line in build.splitlines() if any(w in line for w in wanted)]
