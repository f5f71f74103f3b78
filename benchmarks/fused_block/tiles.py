"""Shapes of the conformer's bottleneck blocks, and how one is cut into tiles.

Pure Python: nothing here needs Triton or a GPU. A tile is `Variant.tile` consecutive output rows of
one recording; one program computes it. Tensors inside a kernel have powers of two as lengths:

    forward   PI input rows from max(tile start x stride - 2, 0), PO output rows from the tile start
    backward  the same input rows, PO output rows from max(tile start - 2, 0)

The two rows more on each side are what five taps reach. At the ends of a recording they are padding
and cost nothing: a tile of all 63 rows of a recording fits into 64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

TAPS = 5
REACH = TAPS // 2
SMALLEST_INNER = 16  # terms of a product: tl.dot takes no fewer
PRECISIONS = ("fp32", "tf32", "bf16")


@dataclass(frozen=True)
class BlockShape:
    """The shape of one bottleneck block, and how many blocks of the model have it."""

    length: int
    stride: int
    channels: int = 160
    width: int = 40
    count: int = 1

    @property
    def bins(self) -> int:
        """Output rows of a recording."""
        return -(-self.length // self.stride)

    @property
    def name(self) -> str:
        """Such as "250", or "250/2" for a block that halves the length."""
        return f"{self.length}" if self.stride == 1 else f"{self.length}/{self.stride}"


@dataclass(frozen=True)
class Variant:
    """Everything about a kernel that a choice of speed decides; each has its own bits.

    Attributes:
        tile: output rows of one program.
        chunk: channels read at a time; must divide the block's channels.
        inner: terms of the convolution's product at a time.
        warps: warps of one program.
        stages: loads in flight in a loop (Triton's num_stages).
    """

    tile: int
    chunk: int = 32
    inner: int = 32
    warps: int = 4
    stages: int = 2

    def as_values(self) -> dict[str, Any]:
        """Return plain values for a record."""
        return asdict(self)


@dataclass(frozen=True)
class TilePlan:
    """A block shape cut into tiles: `tiles` of `tile` output rows for each recording."""

    tile: int
    tiles: int
    input_rows: int  # PI
    output_rows: int  # PO


def list_shapes(
    width: int, blocks: Sequence[int], length: int, expansion: int = 4
) -> list[BlockShape]:
    """Return the shapes of a conformer's blocks, in its order, for recordings of this length.

    The stem's stride and its pool each halve the length, as do stages 1 and 2 in their first block.
    """
    rows = -(-length // 4)
    counts: dict[tuple[int, int], int] = {}
    for stage, number in enumerate(blocks):
        for block in range(number):
            stride = 2 if stage > 0 and block == 0 else 1
            counts[rows, stride] = counts.get((rows, stride), 0) + 1
            rows = -(-rows // stride)
    return [
        BlockShape(rows, stride, expansion * width, width, count)
        for (rows, stride), count in counts.items()
    ]


def split_width(width: int) -> tuple[int, int]:
    """Return two powers of two that cover the width: 40 is 32 and 16, of which 8 are used."""
    first = 1 << (width.bit_length() - 1)
    return first, max(power_above(width - first), SMALLEST_INNER)


def power_above(number: int) -> int:
    """Return the smallest power of two that is not below the number."""
    return 1 << max(number - 1, 0).bit_length()


def plan_tiles(shape: BlockShape, tile: int) -> TilePlan:
    """Return the tiles of a recording and the rows that one program holds.

    Raises:
        ValueError: the tile is empty or longer than the output.
    """
    if not 1 <= tile <= shape.bins:
        raise ValueError(f"expected a tile of 1 to {shape.bins} rows for {shape.name}, got {tile}")
    tiles = -(-shape.bins // tile)
    inputs = outputs = 1
    for number in range(tiles):
        first, stop = number * tile, min((number + 1) * tile, shape.bins)
        begin = max(first * shape.stride - REACH, 0)
        read = min((stop - 1) * shape.stride + REACH + 1, shape.length) - begin
        owned = min((number + 1) * tile * shape.stride, shape.length) - first * shape.stride
        inputs = max(inputs, read, owned)
        reach = min(stop + REACH, shape.bins) - max(first - REACH, 0)
        outputs = max(outputs, stop - first, reach)
    return TilePlan(tile, tiles, power_above(inputs), power_above(outputs))


def list_gradients(channels: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the weights of a block with the shapes of their gradients, in their order in memory.

    The taps are stored as (out, tap, in), the layout that `set_weight_layout` gives their weight.
    """
    return {
        "narrow.weight": (width, channels),
        "convolve.weight": (width, TAPS, width),
        "widen.weight": (channels, width),
        "narrow.bias": (width,),
        "convolve.bias": (width,),
        "widen.bias": (channels,),
        "norm.weight": (channels,),
        "norm.bias": (channels,),
    }


def count_weights(channels: int, width: int) -> int:
    """Return the number of weights of a block: the length of one program's row of gradients."""
    return 2 * channels * width + TAPS * width * width + 2 * width + 3 * channels


def check_variant(shape: BlockShape, variant: Variant) -> None:
    """Refuse a variant that the kernels cannot compute for this shape.

    Raises:
        ValueError: what was expected and what it has.
    """
    if shape.channels % variant.chunk:
        raise ValueError(
            f"expected a chunk that divides {shape.channels} channels, got {variant.chunk}"
        )
    for name in ("chunk", "inner", "warps"):
        value = getattr(variant, name)
        if value != power_above(value):
            raise ValueError(f"expected {name} to be a power of two, got {value}")
    if min(variant.chunk, variant.inner) < SMALLEST_INNER:
        raise ValueError(f"expected chunk and inner of at least {SMALLEST_INNER}, got {variant}")
    plan_tiles(shape, variant.tile)
