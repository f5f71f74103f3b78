"""The fused bottleneck block as a function with a gradient, and how it replaces the model's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.fused_block.backward_kernel import add_parts, block_backward
from benchmarks.fused_block.forward_kernel import block_forward
from benchmarks.fused_block.jit import triton
from benchmarks.fused_block.tiles import (
    TAPS,
    BlockShape,
    Variant,
    check_variant,
    count_weights,
    list_gradients,
    plan_tiles,
    split_width,
)
from seedless.models.conformer import Bottleneck

TRITON_PRECISION = {"fp32": "ieee", "tf32": "tf32", "bf16": "ieee", "tf32x3": "tf32x3"}
ADDED_ROWS, ADDED_COLUMNS = 32, 64  # of `add_parts`, at a time


def describe_shape(block: Bottleneck, length: int) -> BlockShape:
    """Return the shape of a block for recordings of this length."""
    (stride,) = block.convolve.stride
    return BlockShape(length, stride, block.narrow.in_channels, block.narrow.out_channels)


def list_constants(shape: BlockShape, variant: Variant, precision: str) -> dict[str, Any]:
    """Return the constants that a kernel is compiled with."""
    check_variant(shape, variant)
    plan, (first, rest) = plan_tiles(shape, variant.tile), split_width(shape.width)
    return {
        "STRIDE": shape.stride,
        "TAPS": TAPS,
        "C": shape.channels,
        "W": shape.width,
        "A": first,
        "B": rest,
        "PI": plan.input_rows,
        "PO": plan.output_rows,
        "BC": variant.chunk,
        "BK": variant.inner,
        "BF16": precision == "bf16",
        "PRECISION": TRITON_PRECISION[precision],
    }


def launch_forward(
    x: Tensor,
    weights: Sequence[Tensor],
    shape: BlockShape,
    variant: Variant,
    precision: str,
    eps: float,
    launched: list[Any] | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Return y (samples, bins, channels), and what the backward kernel reads again.

    Args:
        x: (samples, length, channels), float32, contiguous.
        weights: in the order of `list_gradients`.
        launched: the compiled kernel is appended to it.
    """
    narrow, taps, widen, narrow_bias, taps_bias, widen_bias, scale, shift = weights
    taps = taps.transpose(1, 2).contiguous()  # no copy in the layout of `set_weight_layout`
    plan, constants = plan_tiles(shape, variant.tile), list_constants(shape, variant, precision)
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    samples = len(x)
    rows, programs = samples * shape.bins, samples * plan.tiles
    y, z3 = (x.new_empty(samples, shape.bins, shape.channels) for _ in range(2))
    z1 = x.new_empty(samples * shape.length, shape.width, dtype=kind)
    z2 = x.new_empty(rows, shape.width, dtype=kind)
    mean, rstd = x.new_empty(rows), x.new_empty(rows)
    h1 = x.new_empty(programs, plan.input_rows, shape.width, dtype=kind)
    kernel = block_forward[(programs,)](
        *(x, narrow, narrow_bias, taps, taps_bias, widen, widen_bias, scale, shift),
        *(y, z1, z2, z3, mean, rstd, h1),
        *(shape.length, shape.bins, plan.tile, plan.tiles, eps),
        **constants,
        num_warps=variant.warps,
        num_stages=variant.stages,
    )
    if launched is not None:
        launched.append(kernel)
    return y, [x, narrow, taps, widen, scale, z1, z2, z3, mean, rstd]


def launch_backward(
    dy: Tensor,
    saved: Sequence[Tensor],
    shape: BlockShape,
    variant: Variant,
    precision: str,
    flat: Tensor | None = None,
    launched: list[Any] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the gradient of x, and those of all weights in one flat tensor, ``flat`` if given."""
    x, z1 = saved[0], saved[5]
    plan, constants = plan_tiles(shape, variant.tile), list_constants(shape, variant, precision)
    programs, total = len(x) * plan.tiles, count_weights(shape.channels, shape.width)
    dx, parts = torch.empty_like(x), x.new_empty(programs, total)
    h1 = z1.new_empty(programs, plan.input_rows, shape.width)
    d2 = z1.new_empty(programs, plan.output_rows, shape.width)
    skips = x.new_empty(programs, plan.output_rows, shape.channels)
    kernel = block_backward[(programs,)](
        *(dy, *saved, dx, parts, h1, d2, skips),
        *(shape.length, shape.bins, plan.tile, plan.tiles, total),
        **constants,
        num_warps=variant.warps,
        num_stages=variant.stages,
    )
    if launched is not None:
        launched.append(kernel)
    flat = x.new_empty(total) if flat is None else flat
    add_parts[(triton.cdiv(total, ADDED_COLUMNS),)](
        parts, flat, total, COUNT=programs, ROWS=ADDED_ROWS, COLUMNS=ADDED_COLUMNS
    )
    return dx, flat


class FusedBlock(torch.autograd.Function):
    """One kernel forward; one backward, and one that adds up its weight gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *arguments: Any) -> Tensor:
        """Return y of x, the weights, and the settings."""
        *weights, shape, variants, precision, eps, flat = arguments
        y, saved = launch_forward(x, weights, shape, variants[0], precision, eps)
        ctx.save_for_backward(*saved)
        ctx.settings, ctx.flat = (shape, variants[1], precision), flat
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x and of the eight weights; none for those written to `flat`."""
        dy = grads[0].contiguous()
        dx, flat = launch_backward(dy, ctx.saved_tensors, *ctx.settings, ctx.flat)
        settings = (None,) * 5
        if ctx.flat is not None:
            return dx, *(None,) * 8, *settings
        return dx, *view_gradients(flat, ctx.settings[0]), *settings


def view_gradients(flat: Tensor, shape: BlockShape) -> list[Tensor]:
    """Return the parts of a flat gradient in the shapes of the weights they belong to."""
    views = []
    for name, size in list_gradients(shape.channels, shape.width).items():
        part, flat = flat[: torch.Size(size).numel()], flat[torch.Size(size).numel() :]
        part = part.view(size)
        if name == "convolve.weight":
            part = part.transpose(1, 2)
        elif len(size) == 2:  # a convolution of one tap
            part = part.unsqueeze(2)
        views.append(part)
    return views


def list_weights(block: Bottleneck) -> list[Tensor]:
    """Return a block's weights in the order of `list_gradients`."""
    named = dict(block.named_parameters())
    return [named[name] for name in list_gradients(1, 1)]


def run_block(
    block: Bottleneck,
    x: Tensor,
    variants: tuple[Variant, Variant],
    precision: str,
    flat: Tensor | None = None,
) -> Tensor:
    """Return the block's output, computed by the fused kernels.

    Args:
        x: (samples, length, channels), float32, contiguous.
        variants: of the forward and of the backward kernel.
        precision: "fp32", "tf32", "bf16" or "tf32x3".
        flat: where the weight gradients are written instead of returned: the weights' ``.grad``
            must be views of it.
    """
    if triton is None:
        raise RuntimeError("the fused block needs Triton, which is not installed")
    if x.dtype != torch.float32 or x.ndim != 3:
        raise ValueError(
            f"expected float32 (samples, length, channels), got {x.dtype} {tuple(x.shape)}"
        )
    shape = describe_shape(block, x.shape[1])
    eps = block.norm.eps
    out: Tensor = FusedBlock.apply(
        x.contiguous(), *list_weights(block), shape, variants, precision, eps, flat
    )
    return out
