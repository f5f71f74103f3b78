"""A test of the compiled kernels on each device, before they are used there.

Law: a kernel has the bits of the ops it replaces. Each op is computed twice on inputs that reach
the kernels of training steps, with kernels and without; one different bit, and none is used.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from seedless.portable.context import CONTEXT
from seedless.portable.kernels.fused_product import has_kernels
from seedless.portable.kernels.launch import find_kernels
from seedless.portable.ops.registry import REGISTRY
from seedless.portable.test_inputs import Input

_FUNCTIONS = ("gelu", "silu", "exp", "sigmoid", "relu")
_GRADIENTS = ("gelu_backward", "silu_backward")
_ADAM = {
    "lr": 0.01,
    "beta1": 0.9,
    "beta2": 0.999,
    "weight_decay": 0.1,
    "eps": 1e-8,
    "amsgrad": False,
    "maximize": False,
}
_SGD = {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.9, "dampening": 0.1, "maximize": False}
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def check_kernels_once(device: torch.device) -> None:
    """Test a device's kernels when it is first used; warn, and use none there, if they differ."""
    if (
        device in CONTEXT.tested_devices
        or device.type == "meta"
        or CONTEXT.sum_evaluator is not None
        or find_kernels(device) is None
    ):
        return
    with CONTEXT.self_test_lock:
        if device in CONTEXT.tested_devices:
            return
        differing = find_differing(device)
        if differing:
            CONTEXT.rejected_devices.add(device)
        CONTEXT.tested_devices.add(device)
    if differing:
        warnings.warn(
            f"kernels compiled for {device} give other bits than the ops they replace "
            f"({', '.join(differing)}); they are not used. Results are the same, but slower",
            RuntimeWarning,
            stacklevel=2,
        )


def find_differing(device: torch.device) -> list[str]:
    """Return the ops that have other bits with compiled kernels than without."""
    with device:  # the default device may be another one
        names = [name for name, _, _ in list_calls(device)]
        compiled = [[_run(call) for call in list_calls(device)]]
        if has_kernels(device):  # it needs both ways to multiply: part of a batch has no fused one
            with CONTEXT.multiply_in_steps():
                compiled.append([_run(call) for call in list_calls(device)])
        with CONTEXT.without_kernels():
            plain = [_run(call) for call in list_calls(device)]
    return sorted(
        {
            name
            for results in compiled
            for name, one, other in zip(names, results, plain, strict=True)
            if not all(map(_same, one, other))
        }
    )


def list_calls(device: torch.device) -> Iterator[Call]:
    """Yield overloads, positional and named arguments that reach the kernels of training steps."""

    def some(*shape: int, name: str = "a", shift: float = 0.0, edges: bool = False) -> Tensor:
        return Input(shape, 3.0, shift, edges=edges).make(f"self_test.{name}", device)

    line, rows, image = some(300, edges=True), some(20, 40), some(4, 6, 7, 5)
    for name in _FUNCTIONS:
        yield name, (line,), {}
    for name in _GRADIENTS:
        yield name, (some(300, name="b"), line), {}
    yield "threshold_backward", (some(300, name="b"), line, 0), {}
    yield "native_layer_norm", (rows, [40], some(40, name="w"), some(40, name="v"), 1e-5), {}
    arguments: tuple[Any, ...]
    stats = (some(20, 1, name="m"), some(20, 1, name="s"))
    arguments = (rows, some(20, 40, name="b"), [40], *stats, some(40, name="w"), some(40, name="v"))
    yield "native_layer_norm_backward", (*arguments, [True] * 3), {}
    yield "_softmax", (rows, 1, False), {}
    yield "_softmax", (some(2, 3000), 1, False), {}
    yield "_softmax_backward_data", (some(20, 40, name="b"), rows, 1, torch.float32), {}
    for axis in (0, 1):
        yield "_log_softmax", (rows, axis, False), {}
    weights = (some(6, name="w"), some(6, name="v"))
    for x in (image, image.to(memory_format=torch.channels_last)):
        running = (some(6, name="m"), some(6, name="r", shift=4.0))
        yield "native_batch_norm", (x, *weights, *running, True, 0.1, 1e-5), {}
        arguments = (x.flip(0), x, weights[0], *running, some(6, name="c"), some(6, name="d"))
        yield "native_batch_norm_backward", (*arguments, True, 1e-5, [True] * 3), {}
    for k in (40, 300):
        for left in (some(5, k, name="l"), some(k, 5, name="l").t()):
            for right in (some(k, 70, name="r"), some(70, k, name="r").t()):
                yield "mm", (left, right), {}
        # One matrix repeated, with several that are interleaved in memory, as windows over time.
        yield "bmm", (some(9, k).expand(3, 9, k), some(k, 3, 7, name="r").transpose(0, 1)), {}
    yield "addmm", (some(70, name="w"), some(5, 40, name="l"), some(40, 70, name="r")), {}
    yield "addmm", (some(7, name="w"), some(5, 700, name="l"), some(700, 7, name="r")), {}
    yield "mm", (some(5, 700, name="l"), some(700, 7, name="r")), {}  # k in several parts
    for filters, stride in ((some(8, 6, 3, 3, name="f"), 1), (some(8, 3, 3, 2, name="f"), 2)):
        settings = ([stride, 1], [1, 0], [1, 1], False, [0, 0], 6 // filters.shape[1])
        yield "convolution", (image, filters, None, *settings), {}
        grad = some(4, 8, 7 if stride == 1 else 4, 5 + 1 - filters.shape[3], name="g")
        yield (
            "convolution_backward",
            (grad, image, filters, None, *settings, [True, True, False]),
            {},
        )
    yield "sum.dim_IntList", (image, [0]), {}
    yield "sum.dim_IntList", (some(200, 9), [0]), {}
    sizes = (50, 700)
    states = [[some(size, name=name) for size in sizes] for name in ("p", "g", "n")]
    states += [[some(size, name="q").abs() for size in sizes], []]
    states += [[torch.full((), number, device=device) for number in (3.0, 1000.0)]]
    for first, nesterov in ((True, False), (False, True)):
        arguments = tuple([x.clone() for x in states[i]] for i in (0, 1, 2))
        yield "_fused_sgd_", arguments, {**_SGD, "is_first_step": first, "nesterov": nesterov}
    yield "_fused_adam_", tuple(states), _ADAM
    yield "_fused_adamw_", tuple([[x.clone() for x in each] for each in states]), _ADAM


def _run(call: Call) -> list[Tensor]:
    """Return the tensors that an op returned, and its arguments, which it may have changed."""
    name, args, named = call
    out = REGISTRY[f"aten::{name}"](*args, **named)
    listed = list(out) if isinstance(out, tuple | list) else [out]
    written = [x for value in args for x in (value if isinstance(value, list) else [value])]
    return [x for x in (*listed, *written) if isinstance(x, Tensor)]


def _same(one: Tensor, other: Tensor) -> bool:
    """Return whether two results have the same bits, all NaNs counting as equal."""
    bits = [torch.where(x == x, x.view(torch.int32), 0x7FC00000) for x in (one, other)]
    return one.shape == other.shape and bool((bits[0] == bits[1]).all())
