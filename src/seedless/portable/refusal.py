"""Errors for what has no portable form: the op, the line of the caller's code, and what to do.

`ops/registry.py` decides which ops are refused, and `mode.py` which calls of the others.
"""

import re
import sys
from pathlib import Path
from typing import Any

import torch

from seedless.core.errors import NumericsError

_TORCH = f"{Path(torch.__file__).parent}/"  # torchvision lies beside it
_HERE = f"{Path(__file__).parent}/"
_DRAWS = f"{Path(__file__).parents[1]}/numerics/"  # stands between a converted model and torch
_NOT_THE_CALLER = (_TORCH, _HERE, _DRAWS, "<frozen")

# Ops that take random numbers from torch's generator.
_RANDOM_OPS = """
    bernoulli uniform normal random randint rand randn rand_like randn_like randint_like
    randperm native_dropout multinomial exponential geometric log_normal cauchy
    rrelu_with_noise _fused_dropout poisson normal_functional
"""
RANDOM = frozenset(_RANDOM_OPS.split())
# Ops of torch.amp.GradScaler.
SCALING = frozenset({"_amp_foreach_non_finite_check_and_unscale", "_amp_update_scale"})
ADVICE = {
    "scaler": "a gradient scaler keeps small float16 gradients from becoming zero, and portable "
    "arithmetic is in float32; leave it out, or make it with enabled=False",
    "random": "it takes random numbers from torch's generator; call seedless.convert(model) first, "
    "use seedless.Dropout, or make them before and pass them in",
    "reduced": "portable arithmetic works in float32: leave autocast, half types and complex "
    "numbers out (a Fourier transform is a product with two real matrices, of cosines and sines)",
    "double": "sums and products of float64 would keep float32's precision only: cast to float32",
    "collective": "what it exchanges would depend on the number of processes; open the block with "
    "`seedless.portable(group=...) as p` and call p.step(forward, loss_of, *batch), which "
    "exchanges exact sums, or call this outside the block",
    "unknown": "write it with ops that have a portable form (seedless.portable.ops.registry), or "
    "run this part before and outside `with portable():`",
}


def find_caller() -> str:
    """Return file:line of the innermost frame that is neither torch's nor this package's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_NOT_THE_CALLER) and Path(name).name != "contextlib.py":
            return f"{name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "an unknown line"


def find_place() -> str:
    """Return where an op was called; in a backward pass, also the node whose gradient it is.

    Torch remembers the line of the forward pass only while its anomaly detection is on.
    """
    node: Any = torch._C._current_autograd_node()
    if node is None:
        return f"at {find_caller()}"
    what = node.name()
    stack = "".join(node.metadata.get("traceback_", ()))
    lines = [
        f"{name}:{number}"
        for name, number in re.findall(r'File "([^"]+)", line (\d+)', stack)
        if not name.startswith(_NOT_THE_CALLER)
    ]
    if lines:
        return f"in the backward pass ({what}) of {lines[-1]}"
    return (
        f"in the backward pass ({what}) called at {find_caller()} (inside `with "
        "torch.autograd.detect_anomaly():` this names the line of your model)"
    )


def refuse(op: str, advice: str) -> NumericsError:
    """Return the error for an op that has no portable form here: its name, its line, what to do."""
    name = op.replace("aten::", "aten.")
    return NumericsError(f"{name} is not portable, {find_place()}: {advice}")


def refuse_backward() -> NumericsError:
    """Return the error for a backward pass outside the block."""
    return NumericsError(
        "expected backward() inside `with portable():`, like the forward pass it belongs to; "
        f"got it outside, at {find_caller()}: it would run in ordinary arithmetic. Move it inside"
    )


def refuse_backward_in_group() -> NumericsError:
    """Return the error for a bare backward pass in a group of processes."""
    return NumericsError(
        "expected p.step(forward, loss_of, *batch) of `with portable(group=...) as p:`, got a bare "
        f"backward() at {find_caller()}: its gradients would be those of this process's samples "
        "alone, and DistributedDataParallel's sums depend on the number of processes. "
        "Call p.step with the model itself"
    )


def refuse_changed(shape: tuple[int, ...]) -> NumericsError:
    """Return the error for a tensor that was written to between forward and backward pass."""
    return NumericsError(
        f"expected a tensor {shape} as the forward pass left it, got it changed in place since, "
        f"{find_place()}: its gradient would be that of another function. Write the result of the "
        "change to a new tensor"
    )
