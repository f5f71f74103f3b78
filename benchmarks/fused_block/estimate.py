"""What a block must cost at least, counted before anything is measured.

Bytes are counted as the kernels move them through device memory, each tensor once in each kernel;
operations are two for each multiplication of a matrix product. The floor is the larger of bytes and
operations over the device's rates. A program's padded rows and channels are counted separately:
they show how much of the arithmetic is wasted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.fused_block.tiles import (
    TAPS,
    BlockShape,
    Variant,
    count_weights,
    plan_tiles,
    split_width,
)

BYTES_PER_SECOND = 4.0e12  # of a large copy on an H200, rounded down from what was measured
# The vendor's dense rates for TF32 and bfloat16, and its plain float32 rate.
OPERATIONS_PER_SECOND = {"fp32": 67e12, "tf32": 495e12, "bf16": 990e12}
FLOAT = 4


@dataclass(frozen=True)
class Work:
    """Bytes through device memory and operations of one launch of a kernel."""

    bytes: int
    operations: int
    padded_operations: int

    def floor_ms(self, precision: str) -> float:
        """Return the least milliseconds at the device's rates."""
        arithmetic = self.operations / OPERATIONS_PER_SECOND[precision]
        return 1e3 * max(self.bytes / BYTES_PER_SECOND, arithmetic)


def count_forward(shape: BlockShape, samples: int, variant: Variant, precision: str) -> Work:
    """Return the work of the forward kernel."""
    rows_in, rows_out = samples * shape.length, samples * shape.bins
    inside = 2 if precision == "bf16" else FLOAT
    wide = shape.channels * FLOAT * (rows_in + 2 * rows_out)  # x, z3, y
    narrow = shape.width * inside * (rows_in + rows_out)  # z1, z2
    weights = count_weights(shape.channels, shape.width) * FLOAT
    plan = plan_tiles(shape, variant.tile)
    programs = samples * plan.tiles
    return Work(
        bytes=wide + narrow + weights + 2 * FLOAT * rows_out,
        operations=_products(shape, rows_in, rows_out, shape.width, TAPS * shape.width),
        padded_operations=_products(
            shape,
            programs * plan.input_rows,
            programs * plan.output_rows,
            sum(split_width(shape.width)),
            _pad(TAPS * shape.width, variant.inner),
        ),
    )


def count_backward(shape: BlockShape, samples: int, variant: Variant, precision: str) -> Work:
    """Return the work of the backward kernel and of adding up the weight gradients."""
    rows_in, rows_out = samples * shape.length, samples * shape.bins
    inside = 2 if precision == "bf16" else FLOAT
    wide = shape.channels * FLOAT * (2 * rows_in + 2 * rows_out)  # x, dx, dy, z3
    narrow = shape.width * inside * (rows_in + rows_out)  # z1, z2
    plan = plan_tiles(shape, variant.tile)
    programs = samples * plan.tiles
    weights = count_weights(shape.channels, shape.width) * FLOAT
    parts = 2 * programs * weights  # written, and read to be added up
    forward = count_forward(shape, samples, variant, precision)
    return Work(
        bytes=wide + narrow + 2 * weights + parts + 2 * FLOAT * rows_out,
        operations=2 * forward.operations,
        padded_operations=2 * forward.padded_operations,
    )


def _products(shape: BlockShape, rows_in: int, rows_out: int, width: int, taps: int) -> int:
    narrow, widen = rows_in * shape.channels * width, rows_out * width * shape.channels
    return 2 * (narrow + rows_out * taps * width + widen)


def _pad(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def estimate_shape(
    shape: BlockShape, samples: int, variants: tuple[Variant, Variant], precision: str
) -> dict[str, Any]:
    """Return the row of a block shape: bytes, operations and floors, for one block."""
    forward = count_forward(shape, samples, variants[0], precision)
    backward = count_backward(shape, samples, variants[1], precision)
    floors = [forward.floor_ms(precision), backward.floor_ms(precision)]
    return {
        "shape": shape.name,
        "blocks": shape.count,
        "precision": precision,
        "samples": samples,
        "forward_bytes": forward.bytes,
        "backward_bytes": backward.bytes,
        "operations": forward.operations + backward.operations,
        "padded_operations": forward.padded_operations + backward.padded_operations,
        "forward_floor_ms": floors[0],
        "backward_floor_ms": floors[1],
        "all_blocks_floor_ms": shape.count * sum(floors),
    }
