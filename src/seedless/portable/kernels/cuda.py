"""The kernels for a CUDA device: compiled by NVRTC on first use, launched by the driver."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from seedless.core.processes import list_import_path
from seedless.portable.kernels.kernel_cache import find_or_build
from seedless.portable.kernels.source import write_source

# Contraction off; denormals, divisions and roots follow IEEE by default.
FLAGS = ("--fmad=false", "--std=c++17")
MATRIX_CAPABILITY = (9, 0)  # the first with products of float64 tiles of 16 x 8 x 8


class CudaKernels:
    """The compiled kernels on one device.

    Attributes:
        multiplies_tiles: whether it has the units for float64 matrices of `fused_product`.
    """

    def __init__(self, binary: bytes, index: int) -> None:
        self.index = index
        self.multiplies_tiles = torch.cuda.get_device_capability(index) >= MATRIX_CAPABILITY
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._context, self._module = ctypes.c_void_p(), ctypes.c_void_p()
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), ctypes.c_int(index))
        with self._entered():
            self._call("cuModuleLoadData", byref(self._module), binary)

    def launch(self, name: str, shape: tuple[int, ...], args: list[Any]) -> None:
        """Run a kernel on the current stream, on blocks in x and y, threads in x and y."""
        with self._entered():
            function = self._functions.get(name)
            if function is None:
                function = ctypes.c_void_p()
                self._call("cuModuleGetFunction", byref(function), self._module, name.encode())
                self._functions[name] = function
            pointers = (ctypes.c_void_p * len(args))(
                *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in args)
            )
            stream = ctypes.c_void_p(torch.cuda.current_stream(self.index).cuda_stream)
            sizes = (*shape[:2], 1, *shape[2:], 1)
            self._call("cuLaunchKernel", function, *sizes, 0, stream, pointers, None)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Make the device's context the thread's: one of a backward pass may have none yet."""
        before = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", byref(before))
        if before.value == self._context.value:
            yield
            return
        self._call("cuCtxSetCurrent", self._context)
        try:
            yield
        finally:
            if before.value:
                self._call("cuCtxSetCurrent", before)

    def _call(self, function: str, *args: Any) -> None:
        """Call the CUDA driver, or raise what it says went wrong."""
        code = getattr(self._driver, function)(*args)
        if code:
            message = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, byref(message))
            reason = (message.value or b"unknown").decode()
            raise RuntimeError(f"the CUDA driver refused a portable kernel: {reason} ({code})")


@lru_cache(maxsize=8)
def load_kernels(index: int) -> CudaKernels | None:
    """Return the kernels for a device; None where NVRTC or the driver is not found."""
    try:
        nvrtc = find_nvrtc()
        major, minor = torch.cuda.get_device_capability(index)
        source, architecture = write_source(), f"sm_{major}{minor}"
        key = "\n".join([source, *FLAGS, architecture, _read_version(nvrtc)]).encode()

        def build(path: Path) -> None:
            path.write_bytes(compile_binary(nvrtc, source, architecture))

        return CudaKernels(find_or_build(key, ".cubin", build).read_bytes(), index)
    except (OSError, RuntimeError):
        return None


def find_nvrtc() -> ctypes.CDLL:
    """Return NVRTC from torch's packages, or from the system."""
    major = (torch.version.cuda or "13").split(".")[0]
    name = f"libnvrtc.so.{major}"
    try:
        return ctypes.CDLL(name)
    except OSError:
        for folder in list_import_path():  # never from the current directory
            for library in sorted(Path(folder).glob(f"nvidia/*/lib/{name}*")):
                return ctypes.CDLL(str(library))
        raise


def _read_version(nvrtc: ctypes.CDLL) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _call(nvrtc, "nvrtcVersion", byref(major), byref(minor))
    return f"NVRTC {major.value}.{minor.value}"


def compile_binary(
    nvrtc: ctypes.CDLL, source: str, architecture: str, form: str = "CUBIN"
) -> bytes:
    """Return the kernels for an architecture as the driver loads them, or as PTX text."""
    program = ctypes.c_void_p()
    text = (source.encode(), b"kernels.cu", 0, None, None)
    _call(nvrtc, "nvrtcCreateProgram", byref(program), *text)
    options = [flag.encode() for flag in (*FLAGS, f"--gpu-architecture={architecture}")]
    listed = (ctypes.c_char_p * len(options))(*options)
    try:
        if nvrtc.nvrtcCompileProgram(program, len(options), listed):
            log = _read(nvrtc, program, "ProgramLog").decode(errors="replace")
            raise RuntimeError(f"NVRTC could not compile the portable kernels:\n{log}")
        return _read(nvrtc, program, form)
    finally:
        nvrtc.nvrtcDestroyProgram(byref(program))


def _read(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _call(nvrtc, f"nvrtcGet{what}Size", program, byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    _call(nvrtc, f"nvrtcGet{what}", program, buffer)
    return buffer.raw


def _call(nvrtc: ctypes.CDLL, function: str, *args: Any) -> None:
    code = getattr(nvrtc, function)(*args)
    if code:
        raise RuntimeError(f"NVRTC's {function} failed with code {code}")
