"""Sums over rows for a layer norm's weight and bias, evaluated elsewhere but computed by kernels.

Where a batch is computed in parts, its sums over samples are `ExactSum`s of which the exponents are
asked first and the integers later. These find both from the float32 tensors, without writing the
addends g (x - mean) scale down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor

from seedless.portable.constants import (
    HIGHEST_EXPONENT,
    LOWEST_EXPONENT,
    MAX_EXACT_ADDENDS,
    SUM_BITS,
)
from seedless.portable.exact.sums import ExactSum, Operand, Parts, evaluate
from seedless.portable.kernels import rows
from seedless.portable.kernels.launch import make_column_zeros

_WEIGHT, _BIAS = 0, 1
_SHIFT = 1022  # 2^(e - 1), which needs the grid of exponent e, has the bits (e + 1022) << 52


@dataclass(frozen=True)
class NormSum(ExactSum):
    """The sum over the rows for a weight or a bias."""

    tensors: Sequence[Tensor] = field(default=(), kw_only=True)
    which: int = field(default=_WEIGHT, kw_only=True)

    def find_exponents(self) -> list[Tensor]:
        """Return the exponents of the grids, one for each column."""
        length = prod(self.shape)
        maxima, _ = make_column_zeros(2 * length, self.tensors[0].device)
        rows.find_norm_maxima(self.tensors, length, maxima)
        exponents = (maxima.view(2, -1)[self.which] >> 52).sub_(_SHIFT)
        return [exponents.clamp_(LOWEST_EXPONENT, HIGHEST_EXPONENT).view(self.shape)]

    def add_integers(self, exponents: Sequence[Tensor]) -> Parts:
        """Return the exact sums on the grids of these exponents."""
        bits = (exponents[0].reshape(-1) + _SHIFT).bitwise_left_shift_(52)
        length = prod(self.shape)
        _, sums = make_column_zeros(2 * length, bits.device)
        rows.add_norm_columns(self.tensors, length, torch.cat([bits, bits]), sums)
        return sums.view(2, -1)[self.which].reshape(self.shape), None


def sum_norm_gradients(
    grad: Tensor,
    x: Tensor,
    shape: Sequence[int],
    centre: Tensor,
    scale: Tensor,
    mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None] | None:
    """Return the gradients of weight and bias that ``mask`` selects; None: there is no kernel."""
    length = prod(shape)
    tensors = rows.align_norm_tensors(grad, x, length, centre, scale)
    if tensors is None:
        return None
    lead = list(range(x.ndim - len(shape)))
    kept = (*(1 for _ in lead), *shape)
    found: list[Tensor | None] = []
    for which, is_asked in zip((_WEIGHT, _BIAS), mask, strict=True):
        if not is_asked:
            found.append(None)
            continue
        exact_sum = NormSum(
            *("sum", (Operand(tensors[0], lead, SUM_BITS),), kept, x.numel() // length),
            *(MAX_EXACT_ADDENDS, _refuse_direct_use),
            tensors=tensors,
            which=which,
        )
        found.append(evaluate(exact_sum).view(tuple(shape)).to(x.dtype))
    return found[0], found[1]


def _refuse_direct_use(*_: Tensor) -> Parts:
    raise NotImplementedError("a NormSum adds its integers itself")
