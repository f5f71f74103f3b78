"""The kernels for a CUDA device: compiled by NVRTC when first asked for, launched by the driver."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from seedless.portable.kernels.cpu import Work, convert
from seedless.portable.kernels.kernel_cache import keep
from seedless.portable.kernels.source import write_source

# Contraction off; denormals, divisions and roots are IEEE's by default.
FLAGS = ("--fmad=false", "--std=c++17")


class Module:
    """The compiled kernels on one device."""

    def __init__(self, binary: bytes, index: int) -> None:
        self.index = index
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._context, self._module = ctypes.c_void_p(), ctypes.c_void_p()
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._check(self._driver.cuInit(0))
        retain = self._driver.cuDevicePrimaryCtxRetain
        self._check(retain(ctypes.byref(self._context), ctypes.c_int(index)))
        with self._entered():
            self._check(self._driver.cuModuleLoadData(ctypes.byref(self._module), binary))

    def launch(self, name: str, work: Work, args: tuple[Any, ...]) -> None:
        """Run a kernel on the current stream."""
        with self._entered():
            function = self._functions.get(name)
            if function is None:
                function = ctypes.c_void_p()
                get = self._driver.cuModuleGetFunction
                self._check(get(ctypes.byref(function), self._module, name.encode()))
                self._functions[name] = function
            values = [convert(value) for value in args]
            pointers = (ctypes.c_void_p * len(values))(
                *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values)
            )
            stream = ctypes.c_void_p(torch.cuda.current_stream(self.index).cuda_stream)
            shape = (work.across, work.down, 1, work.wide, work.high, 1)
            self._check(self._driver.cuLaunchKernel(function, *shape, 0, stream, pointers, None))

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Make the device's context the thread's: one of a backward pass may have none yet."""
        before = ctypes.c_void_p()
        self._check(self._driver.cuCtxGetCurrent(ctypes.byref(before)))
        if before.value == self._context.value:
            yield
            return
        self._check(self._driver.cuCtxSetCurrent(self._context))
        try:
            yield
        finally:
            if before.value:
                self._check(self._driver.cuCtxSetCurrent(before))

    def _check(self, code: int) -> None:
        if code:
            message = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, ctypes.byref(message))
            told = (message.value or b"unknown").decode()
            raise RuntimeError(f"the CUDA driver refused a portable kernel: {told} ({code})")


@lru_cache(maxsize=8)
def load_module(index: int) -> Module | None:
    """Return the kernels for a device; None where there is no NVRTC or the driver is not found."""
    try:
        nvrtc = find_nvrtc()
        major, minor = torch.cuda.get_device_capability(index)
        source, architecture = write_source(), f"sm_{major}{minor}"
        known = "\n".join([source, *FLAGS, architecture, _read_version(nvrtc)]).encode()

        def make(path: Path) -> None:
            path.write_bytes(compile_binary(nvrtc, source, architecture))

        return Module(keep(known, ".cubin", make).read_bytes(), index)
    except (OSError, RuntimeError):
        return None


def find_nvrtc() -> ctypes.CDLL:
    """Return NVRTC as torch's packages have it, or as the system does."""
    major = (torch.version.cuda or "13").split(".")[0]
    name = f"libnvrtc.so.{major}"
    try:
        return ctypes.CDLL(name)
    except OSError:
        for place in sys.path:
            for found in sorted(Path(place or ".").glob(f"nvidia/*/lib/{name}*")):
                return ctypes.CDLL(str(found))
        raise


def _read_version(nvrtc: ctypes.CDLL) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _require(nvrtc, nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"NVRTC {major.value}.{minor.value}"


def compile_binary(
    nvrtc: ctypes.CDLL, source: str, architecture: str, form: str = "CUBIN"
) -> bytes:
    """Return the kernels for an architecture as the driver loads them, or as PTX text."""
    program = ctypes.c_void_p()
    create = nvrtc.nvrtcCreateProgram
    _require(nvrtc, create(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None))
    options = [flag.encode() for flag in (*FLAGS, f"--gpu-architecture={architecture}")]
    listed = (ctypes.c_char_p * len(options))(*options)
    try:
        if nvrtc.nvrtcCompileProgram(program, len(options), listed):
            log = _read(nvrtc, program, "ProgramLog").decode(errors="replace")
            raise RuntimeError(f"NVRTC could not compile the portable kernels:\n{log}")
        return _read(nvrtc, program, form)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    held = ctypes.create_string_buffer(size.value)
    _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, held))
    return held.raw


def _require(nvrtc: ctypes.CDLL, code: int) -> None:
    if code:
        raise RuntimeError(f"NVRTC failed with code {code}")
