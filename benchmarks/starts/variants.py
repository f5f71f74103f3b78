"""Variants of the start `dct`, each of which changes one thing about it.

Every variant fills the convolutions, scaled to the same standard deviation as `dct`; all other
parameters are those of `dct`. Permutations and signs come from the counter, keyed by a parameter's
name and an offset.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import seedless
from seedless.init.bases import BASES
from seedless.init.layer_weights import basis_filters, fan_in, scale_filters, scrambled_filters
from seedless.init.tabled_matrix import table_of_entries
from seedless.numerics.counter_random import draw_uniform

Float64 = NDArray[np.float64]
Shape = tuple[int, ...]
Key = tuple[int, str]
EXIT_SCALE = 0.01
# Where the blocks of timm's networks hold the last norm layer of their residual branch.
LAST_NORMS = {
    "BasicBlock": ("bn2",),
    "Bottleneck": ("conv3.bn", "bn3"),
    "ResNestBottleneck": ("bn3",),
    "DepthwiseSeparableConv": ("bn2",),
    "InvertedResidual": ("bn3",),
    "UniversalInvertedResidual": ("pw_proj.bn",),
}


def keep_dct(shape: Shape, key: Key) -> Float64 | None:
    """Return None: the convolution stays as `dct` fills it."""
    return None


def spread_rows(shape: Shape, key: Key) -> Float64 | None:
    """Return products of all frequencies, and not of the lowest alone."""
    features = fan_in(shape)
    if shape[0] >= features:
        return None  # all frequencies are there already
    rows = np.argsort(draw_uniform(key[0], f"{key[1]} rows", features), kind="stable")
    products = basis_filters("dct", (features, *shape[1:]))
    return products.table[products.find_positions(rows[: shape[0]])]


def sign_columns(shape: Shape, key: Key) -> Float64 | None:
    """Return the rows of `dct` with columns signed: low frequencies no longer add neighbours."""
    signs = np.where(draw_uniform(key[0], f"{key[1]} signs", fan_in(shape)) < 0.5, -1.0, 1.0)
    return basis_filters("dct", shape).fill() * signs


def part_depthwise(shape: Shape, key: Key) -> Float64 | None:
    """Return depthwise kernels that differ from each other."""
    return scrambled_filters(shape, key).fill()


def part_repeats(shape: Shape, key: Key) -> Float64 | None:
    """Return filters of one matrix, in order, where more are needed than there are products."""
    filters, features = shape[0], fan_in(shape)
    if filters <= features:
        return None
    return BASES["dct"](filters, filters, features).fill()


def use_one_matrix(shape: Shape, key: Key) -> Float64 | None:
    """Return the first rows of one matrix over channels and space, in order; none repeats."""
    filters, features = shape[0], fan_in(shape)
    return BASES["dct"](max(filters, features), filters, features).fill()


VARIANTS: dict[str, Callable[[Shape, Key], Float64 | None]] = {
    "dct": keep_dct,
    "rows of all frequencies": spread_rows,
    "columns signed": sign_columns,
    "depthwise kernels apart": part_depthwise,
    "no repeated filters": part_repeats,
    "one matrix, in order": use_one_matrix,
}
# Variants that change depthwise convolutions alone, or all others alone.
DEPTHWISE_ALONE, OTHERS_ALONE = ("depthwise kernels apart",), ("no repeated filters",)
EXITS = f"residual exits at {EXIT_SCALE:g}"
WHOLE = ("scrambled", "canonical_kaiming")  # starts of their own
NAMES = (*VARIANTS, EXITS, *WHOLE)


def start_variant(model: nn.Module, name: str, offset: int = 0) -> int:
    """Fill a network by a variant; return how many of its layers differ from `dct`."""
    if name in WHOLE:
        return len(seedless.initialize(model, name, offset=offset).rows)
    seedless.initialize(model, "dct")
    if name == EXITS:
        return scale_exits(model)
    changed = 0
    for path, module in model.named_modules():
        if not isinstance(module, nn.Conv2d):
            continue
        shape = tuple(module.weight.shape)
        is_depthwise = module.groups > 1 and shape[1] == 1
        if name in (OTHERS_ALONE if is_depthwise else DEPTHWISE_ALONE):
            continue
        filters = VARIANTS[name](shape, (offset, f"benchmarks.starts {path}"))
        if filters is not None:
            values = scale_filters(table_of_entries(filters), shape)
            with torch.no_grad():
                module.weight.copy_(torch.from_numpy(values))
            changed += 1
    return changed


def scale_exits(model: nn.Module) -> int:
    """Scale the gain of the last norm layer of each residual branch; return how many there are.

    In front of a norm layer the scale of a convolution has no effect on what the network computes,
    so the factor belongs on the gain.
    """
    count = 0
    for module in model.modules():
        paths = LAST_NORMS.get(type(module).__name__, ())
        named = dict(module.named_parameters())
        gain = next((named[f"{path}.weight"] for path in paths if f"{path}.weight" in named), None)
        if gain is None or getattr(module, "has_skip", True) is False:
            continue
        with torch.no_grad():
            gain.mul_(EXIT_SCALE)
        count += 1
    return count
