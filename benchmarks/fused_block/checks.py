"""Is the fused block right? Forward and every gradient against the model's own block in float64."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from benchmarks.fused_block.block import list_weights, run_block
from benchmarks.fused_block.tiles import BlockShape, Variant
from seedless.models.conformer import Bottleneck
from seedless.models.layers import set_weight_layout
from seedless.numerics.determinism import make_deterministic, set_fill_uninitialized_memory
from seedless.train.arithmetic import autocast_for

# ||got - expected|| / ||expected|| in float64. TF32 keeps 11 bits of a factor, bfloat16 8 bits;
# Triton's interpreter cuts bfloat16 off where a GPU rounds it.
TOLERANCES = {"fp32": 1e-5, "tf32": 5e-3, "bf16": 4e-2, "tf32x3": 1e-5}
WEIGHT_SPREAD = 0.15


def make_block(shape: BlockShape, device: torch.device, number: int = 0) -> Bottleneck:
    """Return a block with random weights, those of the LayerNorm too, in the model's layout."""
    generator = torch.Generator().manual_seed(number)
    with torch.device("meta"):
        block = Bottleneck(shape.width, shape.stride)
    block = block.to_empty(device="cpu")
    with torch.no_grad():
        for weight in block.parameters():
            weight.copy_(WEIGHT_SPREAD * torch.randn(weight.shape, generator=generator))
        block.norm.weight.add_(1.0)
    set_weight_layout(block)
    return block.to(device)


def make_inputs(
    shape: BlockShape, samples: int, device: torch.device, number: int = 0
) -> tuple[Tensor, Tensor]:
    """Return a random input, and a random gradient of the output."""
    generator = torch.Generator().manual_seed(1000 + number)
    x = torch.randn(samples, shape.length, shape.channels, generator=generator)
    dy = torch.randn(samples, shape.bins, shape.channels, generator=generator)
    return x.to(device), dy.to(device)


def run_twin(block: Bottleneck, x: Tensor, dy: Tensor, precision: str) -> dict[str, Tensor]:
    """Return output and gradients of the model's own block; precision "fp64" is the reference."""
    block = copy.deepcopy(block)
    x = x.clone()
    if precision == "fp64":
        block, x, dy = block.double(), x.double(), dy.double()
    x.requires_grad_()
    with autocast_for(precision, x.device):
        y = block(x)
    return collect(block, x, y, dy)


def run_fused(
    block: Bottleneck,
    x: Tensor,
    dy: Tensor,
    precision: str,
    variants: tuple[Variant, Variant],
) -> dict[str, Tensor]:
    """Return output and gradients of the fused block, in memory that was NaN before."""
    block = copy.deepcopy(block)
    x = x.clone().requires_grad_()
    with fill_with_nan():
        return collect(block, x, run_block(block, x, variants, precision), dy)


def collect(block: Bottleneck, x: Tensor, y: Tensor, dy: Tensor) -> dict[str, Tensor]:
    """Go backward; return output and gradients by name."""
    y.backward(dy.to(y.dtype))
    grads = {name: weight.grad for name, weight in block.named_parameters()}
    found = {"output": y.detach(), "input": x.grad, **grads}
    return {name: value for name, value in found.items() if value is not None}


@contextmanager
def fill_with_nan() -> Iterator[None]:
    """Fill all memory that torch allocates with NaN, so that what nobody wrote is found."""
    # torch sets this attribute without declaring it.
    before = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    set_fill_uninitialized_memory(True)
    try:
        yield
    finally:
        set_fill_uninitialized_memory(before)


def compare(got: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """Return ||got - expected|| / ||expected|| for each name; both must have the same names."""
    if set(got) != set(expected):
        raise ValueError(f"expected {sorted(expected)}, got {sorted(got)}")
    return {
        name: ((got[name].double() - value).norm() / value.norm()).item()
        for name, value in expected.items()
    }


def hash_tensors(tensors: dict[str, Tensor]) -> str:
    """Return a digest of the bits of named tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def check_shape(
    shape: BlockShape,
    precision: str,
    variants: tuple[Variant, Variant],
    samples: int,
    device: torch.device,
) -> dict[str, Any]:
    """Return the errors of the fused block and of its twin, and whether the bits repeat."""
    make_deterministic(tf32=precision == "tf32")
    block, (x, dy) = make_block(shape, device), make_inputs(shape, samples, device)
    expected = run_twin(block, x, dy, "fp64")
    got = run_fused(block, x, dy, precision, variants)
    again = run_fused(block, x, dy, precision, variants)
    errors = compare(got, expected)
    twin = compare(run_twin(block, x, dy, precision.removesuffix("x3")), expected)
    worst = max(errors, key=lambda name: (errors[name] != errors[name], errors[name]))
    return {
        "right": errors[worst] <= TOLERANCES[precision],  # False for NaN
        "tolerance": TOLERANCES[precision],
        "worst": worst,
        "errors": errors,
        "twin_errors": twin,
        "repeats": hash_tensors(got) == hash_tensors(again),
        "digest": hash_tensors(got),
        "weights": len(list_weights(block)),
    }
