"""The kernels for a CPU: compiled once by the machine's C compiler, and cached."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from seedless.portable.kernels.kernel_cache import find_or_build
from seedless.portable.kernels.source import write_source

# Contraction off, and nothing that lets a compiler change a value. Without traps and errno, which
# nothing reads, it may compute several elements at a time.
FLAGS = (
    *("-std=c11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)


class LaunchShape(NamedTuple):
    """How a GPU divides a kernel's work: blocks in x and y, threads of a block in x and y."""

    blocks_x: int
    blocks_y: int
    threads_x: int
    threads_y: int


class CpuKernels:
    """The compiled kernels; a call takes tensors, whole numbers, floats, and None for no tensor."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))

    def launch(self, name: str, shape: LaunchShape, args: tuple[Any, ...]) -> None:
        """Run a kernel; ``shape`` is for GPUs alone."""
        function = getattr(self._library, name)  # ctypes keeps it after the first time
        function.restype = None
        function(*map(convert_argument, args))


def convert_argument(value: Any) -> Any:
    """Return an argument as C takes it."""
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


@lru_cache(maxsize=1)
def load_kernels() -> CpuKernels | None:
    """Return the kernels, compiled now or earlier; None where no compiler can compile them."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    try:
        version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
        key = "\n".join([write_source(), *FLAGS, _describe_processor()]).encode() + version
        build = partial(compile_library, compiler, write_source())
        return CpuKernels(find_or_build(key, ".so", build))
    except (OSError, subprocess.SubprocessError):
        return None


def compile_library(compiler: str, source: str, path: Path) -> None:
    """Compile the text into a library at ``path``."""
    text = path.with_suffix(".c")
    text.write_text(source, "utf-8")
    command = [compiler, *FLAGS, "-o", str(path), str(text), "-lm"]
    subprocess.run(command, capture_output=True, check=True, timeout=300)


def _describe_processor() -> str:
    """Return what -march=native depends on: unlike machines may share a cache folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() + platform.machine()
    return "\n".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
