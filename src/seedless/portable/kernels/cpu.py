"""The kernels for a CPU: compiled once by the machine's C compiler, and cached."""

import ctypes
import platform
import shutil
import subprocess
from functools import partial
from pathlib import Path

from seedless.portable.kernels.kernel_cache import find_or_build
from seedless.portable.kernels.source import write_source

# Contraction off, and nothing that lets a compiler change a value. Without traps and errno, which
# nothing reads, it may compute several elements at a time; and without partial redundancy
# elimination, which moves the lookups in tables into branches, where GCC cannot. Without AVX, GCC
# may put a value into an MMX register, and what a library computes in x87 next would be NaN.
FLAGS = (
    *("-std=c11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-tree-pre"),
    *(("-mno-mmx",) if platform.machine() == "x86_64" else ()),
)


def load_library() -> ctypes.CDLL | None:
    """Return the kernels, compiled now or earlier; None where no compiler can compile them."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    try:
        version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
        key = "\n".join([write_source(), *FLAGS, _describe_processor()]).encode() + version
        build = partial(compile_library, compiler, write_source())
        return ctypes.CDLL(str(find_or_build(key, ".so", build)))
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
