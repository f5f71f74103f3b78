"""Everything in a process that changes bits, set in one place; saved_flags.py puts it back.

On a CPU the thread count matters most, and other programs change it silently through
OMP_NUM_THREADS. An explicit `torch.set_num_threads` overrides that variable, so
`make_deterministic` always makes this call.
"""

import os
from operator import attrgetter
from typing import Any

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError
from seedless.core.threads import count_usable_cores
from seedless.numerics.kernel_choice import NATIVE, set_switches
from seedless.numerics.tested_versions import warn_about_newer_torch

# cuBLAS keeps its results reproducible only with a workspace of fixed size.
CUBLAS_WORKSPACE = ":4096:8"

# The variable that names those which `set_environment_variables` added, for processes we start too.
ADDED_VARIABLES = "SEEDLESS_ADDED_VARIABLES"

_OPENMP_LIMITS = ("OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS", "OMP_THREAD_LIMIT")

# Every place where torch keeps a float32 precision: {name in a receipt: path below torch.backends}.
# A group comes before its members, because setting a group also sets its members.
PRECISION_SETTINGS = {
    "cuda matmul": "cuda.matmul",
    "cudnn": "cudnn",
    "cudnn conv": "cudnn.conv",
    "cudnn rnn": "cudnn.rnn",
    "onednn": "mkldnn",
    "onednn matmul": "mkldnn.matmul",
    "onednn conv": "mkldnn.conv",
    "onednn rnn": "mkldnn.rnn",
}


def set_environment_variables() -> None:
    """Set the variables that libraries read once, at import: call this before importing torch.

    With the passive wait policy, idle OpenMP threads do not spin while other threads need the
    cores. That changes the speed and no bits.
    """
    wanted = {"OMP_WAIT_POLICY": "PASSIVE", "CUBLAS_WORKSPACE_CONFIG": CUBLAS_WORKSPACE}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    if added:
        os.environ.update(added, **{ADDED_VARIABLES: ",".join(added)})


def list_user_environment() -> dict[str, str]:
    """Return the environment as the user made it, without what `set_environment_variables` added.

    For a script of the user: what we add for ourselves would change its results.
    """
    added = os.environ.get(ADDED_VARIABLES, "").split(",")
    return {
        name: value for name, value in os.environ.items() if name not in (*added, ADDED_VARIABLES)
    }


def make_deterministic(*, threads: int | None = None, tf32: bool = False) -> None:
    """Set torch's deterministic flags, float32 precisions and thread count for this process.

    Args:
        threads: threads of torch's CPU operations; all usable cores by default. Results on a CPU
            depend on this number.
        tf32: let matrix products and convolutions on a GPU round their float32 inputs to TF32.

    Example:
        >>> seedless.make_deterministic(threads=4)
    """
    import torch

    warn_about_newer_torch()
    count = count_usable_cores() if threads is None else threads
    check_integer("threads", count, 1, error=NumericsError)
    workspace = os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)
    if workspace not in (":4096:8", ":16:8"):
        raise NumericsError(
            f"CUBLAS_WORKSPACE_CONFIG is {workspace!r}, with which cuBLAS is not reproducible: "
            f"unset it or set it to {CUBLAS_WORKSPACE}"
        )
    _check_openmp(count)
    torch.set_num_threads(count)
    # The same as use_deterministic_algorithms(True), which imports torch's compiler: 1.6 s.
    torch.set_deterministic_debug_mode("error")
    # Filling new memory costs one kernel for each allocation, and nothing here reads memory before
    # writing it: tests/train/test_memory.py runs with several fillings and gets the same bits.
    set_fill_uninitialized_memory(False)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    # The older settings first, then the newer ones: torch keeps both, and refuses to read an older
    # one where they disagree.
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    for path in PRECISION_SETTINGS.values():
        precision = "tf32" if tf32 and path.startswith("cud") else "ieee"
        find_precision_setting(path).fp32_precision = precision
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.set_flush_denormal(False)
    set_switches(NATIVE)


def _check_openmp(threads: int) -> None:
    """Refuse variables by which OpenMP may start fewer threads than it is asked for.

    oneDNN's LSTM then leaves a part of its result unwritten, and its convolution waits forever.
    """
    if threads == 1:
        return
    found = {name: os.environ.get(name, "").strip().lower() for name in _OPENMP_LIMITS}
    limit = found["OMP_THREAD_LIMIT"]
    refused = {
        "OMP_DYNAMIC": found["OMP_DYNAMIC"] in ("true", "1"),
        "OMP_MAX_ACTIVE_LEVELS": found["OMP_MAX_ACTIVE_LEVELS"] == "0",
        "OMP_THREAD_LIMIT": limit.isdecimal() and int(limit) < threads,
    }
    for name in _OPENMP_LIMITS:
        if refused[name]:
            raise NumericsError(
                f"{name} is {os.environ[name]!r}, with which OpenMP may start fewer than the "
                f"{threads} threads of this run, and torch's results are not reproducible: unset "
                "it before Python starts, or use one thread (execution.threads=1)"
            )


def set_fill_uninitialized_memory(enabled: bool) -> None:
    """Choose whether torch's deterministic mode fills new memory with a known value."""
    import torch

    # A property of the module object, which its stubs do not list.
    torch.utils.deterministic.fill_uninitialized_memory = enabled  # type: ignore[attr-defined]


def find_precision_setting(path: str) -> Any:
    """Return the object below torch.backends that holds a `fp32_precision`; "" is the root."""
    import torch

    return attrgetter(path)(torch.backends) if path else torch.backends


def flushes_denormals() -> bool:
    """Return whether half the smallest normal float32 becomes zero: torch has no getter for it."""
    import torch

    return float(torch.full((1,), 2.0**-126) * 0.5) == 0.0
