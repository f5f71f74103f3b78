"""The kernels for a CPU: compiled once by the C compiler that is there, and kept."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from seedless.portable.kernels.kernel_cache import keep
from seedless.portable.kernels.source import write_source

# Contraction off, and nothing that lets a compiler change a value. Without traps and errno, which
# nobody asks for, it may compute several elements at a time.
FLAGS = (
    *("-std=c11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)


class Work(NamedTuple):
    """How a GPU shares a kernel's work: blocks across and down, threads of a block likewise."""

    across: int
    down: int
    wide: int
    high: int


class Library:
    """The compiled kernels; a call takes tensors, whole numbers, floats, and None for no tensor."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._functions: dict[str, Any] = {}

    def launch(self, name: str, work: Work, args: tuple[Any, ...]) -> None:
        """Run a kernel; ``work`` is a GPU's affair."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._library, name)
            function.restype = None
        function(*map(convert, args))


def convert(value: Any) -> Any:
    """Return an argument as C takes it."""
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


@lru_cache(maxsize=1)
def load_library() -> Library | None:
    """Return the kernels, compiled now or before; None where there is no compiler that can."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    try:
        version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
        known = "\n".join([write_source(), *FLAGS, _describe_processor()]).encode() + version
        return Library(keep(known, ".so", partial(compile_library, compiler, write_source())))
    except (OSError, subprocess.SubprocessError):
        return None


def compile_library(compiler: str, source: str, path: Path) -> None:
    """Compile the text into a library."""
    text = path.with_suffix(".c")
    text.write_text(source, "utf-8")
    command = [compiler, *FLAGS, "-o", str(path), str(text), "-lm"]
    subprocess.run(command, capture_output=True, check=True, timeout=300)


def _describe_processor() -> str:
    """Return what -march=native depends on: a home may be shared by unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() + platform.machine()
    return "\n".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
