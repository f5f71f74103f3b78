"""The variants of each block shape: the fixed choice first, then those worth timing on a GPU.

The fixed choice decides the bits. It follows from the list below and from the committed record of
`resources`, which compiles every variant without a GPU: one that spills registers is no candidate.
Nothing is measured at run time.
"""

from __future__ import annotations

import json
from functools import cache

from benchmarks.fused_block.tiles import BlockShape, Variant, plan_tiles
from benchmarks.pages import RESULTS

KERNELS = ("forward", "backward")
RESOURCES = RESULTS / "fused-block-resources.json"
MOST_ROWS = (128, 64)  # of one program: larger tiles need more registers than there are


def choose_variants(shape: BlockShape, precision: str) -> tuple[Variant, Variant]:
    """Return the fixed variants of the forward and of the backward kernel."""
    first, second = (list_variants(shape, precision, kernel)[0] for kernel in KERNELS)
    return first, second


def list_variants(shape: BlockShape, precision: str, kernel: str) -> list[Variant]:
    """Return the candidates of one kernel, the fixed choice first.

    That is the first variant which is known not to spill; where all that were compiled spill, the
    one that spills least. Then come the others that do not spill, and those not compiled yet.
    """
    variants, spilled = list_all_variants(shape), read_spills()
    precision = precision.removesuffix("x3")
    stacks = {one: spilled.get((kernel, shape.name, precision, one)) for one in variants}
    known = [one for one in variants if stacks[one] == 0]
    if not known:
        spilling = [one for one in variants if stacks[one]]
        known = sorted(spilling, key=lambda one: stacks[one] or 0)[:1]
    return [*known, *(one for one in variants if stacks[one] is None)]


def list_all_variants(shape: BlockShape) -> list[Variant]:
    """Return the variants of a shape, also those that spill; earlier ones are preferred."""
    whole, short = (find_longest_tile(shape, rows) for rows in MOST_ROWS)
    variants = [Variant(whole, warps=8), Variant(short, warps=8)]
    variants += [Variant(short, warps=8, stages=1), Variant(short, warps=4)]
    if shape.stride == 1:  # 28 of the 30 blocks
        variants += [
            Variant(whole, warps=16, stages=1),
            Variant(whole, warps=8, stages=3),
            Variant(whole, inner=64, warps=8),
            Variant(-(-whole // 3), warps=4),
        ]
    return list(dict.fromkeys(variants))


def find_longest_tile(shape: BlockShape, most_rows: int) -> int:
    """Return the longest of the equal tiles of a recording whose rows fit into one program."""
    for tiles in range(1, shape.bins + 1):
        plan = plan_tiles(shape, -(-shape.bins // tiles))
        if max(plan.input_rows, plan.output_rows) <= most_rows:
            return plan.tile
    raise ValueError(f"expected a tile of {shape.name} that fits into {most_rows} rows")


@cache
def read_spills() -> dict[tuple[str, str, str, Variant], int]:
    """Return the bytes of spilled registers of every variant that was compiled."""
    if not RESOURCES.exists():
        return {}
    return {
        (row["kernel"], row["shape"], row["precision"], Variant(**row["variant"])): row[
            "stack_bytes"
        ]
        for row in json.loads(RESOURCES.read_text())["rows"]
        if "stack_bytes" in row
    }
