"""Which compiled kernels a device has, which tensors they take, and how one is launched."""

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from seedless.portable.context import CONTEXT
from seedless.portable.kernels import cpu, cuda
from seedless.portable.kernels.cuda import CudaKernels

MAP_THREADS = 256  # of a block, each with one element at a time
MAX_BLOCKS = 4096  # of elements or columns; a block takes up what is left
MAX_ROW_BLOCKS = 1 << 20
MAX_WARP_ROW = 512  # elements of a row that one warp computes; longer rows have a block
WARPS_PER_BLOCK = 8  # each with a row of its own
COLUMN_THREADS = 16  # of a block that share a column, as in column_sums.c


class LaunchShape(NamedTuple):
    """How a GPU divides a kernel's work: blocks in x and y, threads of a block in x and y."""

    blocks_x: int
    blocks_y: int
    threads_x: int
    threads_y: int


class CpuKernels:
    """The kernels that `cpu` compiled."""

    multiplies_tiles = False  # a CPU has `products` instead

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._functions: dict[str, Callable[..., None]] = {}

    def launch(self, name: str, shape: LaunchShape, args: Sequence[Any]) -> None:
        """Run a kernel on values as they are; a CPU makes no use of ``shape``."""
        function = self._functions.get(name) or self._find_function(name, args)
        function(
            *[
                value.data_ptr() if type(value) is not int and isinstance(value, Tensor) else value
                for value in args
            ]
        )

    def _find_function(self, name: str, args: Sequence[Any]) -> Callable[..., None]:
        """Return a kernel that converts its arguments itself: faster than an object for each."""
        function = getattr(self._library, name)
        function.restype = None
        function.argtypes = [type(convert_argument(value)) for value in args]
        self._functions[name] = function
        return function  # type: ignore[no-any-return]  # ctypes knows no signature


def find_kernels(device: torch.device) -> CpuKernels | CudaKernels | None:
    """Return the compiled kernels to use on a device; None where it has none, or none allowed."""
    return _load_kernels(device) if CONTEXT.allows_kernels(device) else None


def _load_kernels(device: torch.device) -> CpuKernels | CudaKernels | None:
    if device.type == "cpu":
        return load_cpu_kernels()
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return cuda.load_kernels(index)
    return None


@lru_cache(maxsize=1)
def load_cpu_kernels() -> CpuKernels | None:
    """Return the kernels for the CPU; None where no compiler can compile them."""
    library = cpu.load_library()
    return None if library is None else CpuKernels(library)


def is_ready(first: Tensor, *others: Tensor | None) -> bool:
    """Return whether kernels take these: float32, not empty, on one device that has kernels."""
    device = first.device
    for x in (first, *others):
        if x is not None and not (is_plain(x) and x.dtype == torch.float32 and x.device == device):
            return False
    return first.numel() > 0 and find_kernels(device) is not None


def is_plain(x: Tensor) -> bool:
    """Return whether a tensor is memory and strides: not fake, wrapped, nested or sparse."""
    return type(x) in (Tensor, Parameter) and x.layout == torch.strided


def launch(name: str, device: torch.device, shape: LaunchShape, *args: Any) -> None:
    """Run a kernel of `c/`; ``shape`` comes from `shape_map`, `shape_rows` or `shape_columns`.

    Another thread may have stopped the use of kernels since the caller found them. That does not
    matter: what has begun is finished.
    """
    kernels = _load_kernels(device)
    assert kernels is not None
    if isinstance(kernels, CpuKernels):
        kernels.launch(name, shape, args)
    else:
        kernels.launch(name, shape, [convert_argument(value) for value in args])


def convert_argument(value: Any) -> Any:
    """Return a tensor, None for no tensor, a structure, a float or a whole number as C takes it."""
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, ctypes.Structure):
        return value
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


def shape_map(size: int) -> LaunchShape:
    """Return how a GPU divides a MAP over elements."""
    return LaunchShape(min(-(-size // MAP_THREADS), MAX_BLOCKS), 1, MAP_THREADS, 1)


def shape_rows(rows: int, length: int) -> LaunchShape:
    """Return how a GPU divides ROWS of a length: a warp for each, or for long ones a block."""
    if length <= MAX_WARP_ROW:
        blocks = min(-(-rows // WARPS_PER_BLOCK), MAX_ROW_BLOCKS)
        return LaunchShape(blocks, 1, 32, WARPS_PER_BLOCK)
    threads = 128
    while threads < 512 and threads * 4 < length:
        threads *= 2
    return LaunchShape(min(rows, MAX_ROW_BLOCKS), 1, threads, 1)


def shape_columns(columns: int, rows: int) -> LaunchShape:
    """Return how a GPU divides columns, 32 a block; blocks share columns where there are few."""
    across = min(-(-columns // 32), MAX_BLOCKS)
    down = max(1, min(rows // (16 * COLUMN_THREADS), MAX_BLOCKS // across, 256))
    return LaunchShape(across, down, 32, COLUMN_THREADS)


def make_column_zeros(columns: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return zeros for the maxima, int64, and the sums, float64, of columns: one fill for both."""
    maxima, sums = torch.zeros((2, columns), dtype=torch.int64, device=device)
    return maxima, sums.view(torch.float64)
