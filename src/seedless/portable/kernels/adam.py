"""Adam's step for many parameters at once: one launch for 80 of them."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.kernels.launch import MAP_THREADS, LaunchShape, launch
from seedless.portable.kernels.rows import align_gradient

MAX_TENSORS = 80  # of one launch: a GPU takes arguments of 4 KB, as in elementwise.c
MAX_TENSOR_BLOCKS = 64  # that share a tensor; each thread takes up what is left


class AdamTensor(ctypes.Structure):
    """Addresses of one parameter's tensors, and how many elements each has."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("parameter", "average", "square", "grad", "step")),
        ("size", ctypes.c_int64),
    )


class AdamTensors(ctypes.Structure):
    """The argument of a launch."""

    _fields_ = (("tensors", AdamTensor * MAX_TENSORS),)


def adam(
    lists: Sequence[Sequence[Tensor]],
    rate: Tensor,
    settings: tuple[float, float, float, float],
    decoupled: bool,
) -> list[int]:
    """Take Adam's step where kernels can; return the indices of the parameters they left out.

    Args:
        lists: parameters, gradients, averages of gradients, averages of squares, and the number of
            each parameter's steps with this one, a float32.
        rate: the learning rate, float64.
        settings: both betas, weight decay, eps.
        decoupled: whether weight decay is AdamW's.
    """
    rest, taken = [], []
    for i, (parameter, grad, average, square, step) in enumerate(zip(*lists, strict=True)):
        aligned = align_gradient(parameter, grad, [average, square])
        is_counted = step.dtype == torch.float32 and step.device == parameter.device
        if aligned is None or not is_counted or parameter.device != rate.device:
            rest.append(i)
        else:
            taken.append((parameter, average, square, aligned, step))
    for first in range(0, len(taken), MAX_TENSORS):
        part = taken[first : first + MAX_TENSORS]
        table, largest = AdamTensors(), max(tensors[0].numel() for tensors in part)
        for place, tensors in enumerate(part):
            addresses = (tensor.data_ptr() for tensor in tensors)
            table.tensors[place] = AdamTensor(*addresses, tensors[0].numel())
        blocks = min(-(-largest // MAP_THREADS), MAX_TENSOR_BLOCKS)
        shape = LaunchShape(blocks, len(part), MAP_THREADS, 1)
        numbers = (rate, *map(float, settings), int(decoupled))
        launch("adam", rate.device, shape, table, len(part), *numbers)
    return rest
