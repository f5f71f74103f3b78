"""A checksum over every float32 that any op computes, forward, backward and in the optimizer.

Weights at the end can agree although one gradient on the way did not; this sum cannot miss it. A
result's checksum is the sum of its values' bits, each times the 64-bit weight of its place, modulo
2^64, stirred; the checksums of all results are added. Integer sums are the same in any order, so
neither the device's order nor that of independent ops shows. Views, copies and fills compute
nothing and are left out; every NaN counts as one and the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from seedless.portable.ops.registry import COMPUTING, REPLACED

_ODD, _STIR = -7046029254386353131, -4658895280553007687  # odd: 2^64 times fractions of no pattern
_KEPT = 4096  # sums kept before they are joined into one


class Trace:
    """The checksum of what was computed so far, and of how many results."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0
        self._sums: list[Tensor] = []

    def note(self, name: str, args: tuple[Any, ...], out: Any) -> None:
        """Take in what an op returned, or wrote into its first arguments where it returns none."""
        base = name.removeprefix("_foreach_").rstrip("_")
        if base in REPLACED or base in COMPUTING or name in REPLACED:
            written = args[:4] if name.startswith("_fused_") else args[:1]
            self._take(written if out is None else out)

    def _take(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            for part in value:
                self._take(part)
        elif isinstance(value, Tensor) and value.dtype == torch.float32 and value.numel():
            self.count += 1
            self._sums.append(_check(value))
            if len(self._sums) >= _KEPT:
                self._join()

    def _join(self) -> None:
        if self._sums:
            for device in {one.device for one in self._sums}:
                sums = torch.stack([one for one in self._sums if one.device == device])
                self._total += int(_stir(sums).sum())
            self._sums = []

    def read(self) -> str:
        """Return the number of results and 16 hex digits."""
        self._join()
        return f"{self.count}:{self._total % (1 << 64):016x}"


def _check(value: Tensor) -> Tensor:
    flat = value.reshape(-1)
    bits = torch.where(flat != flat, math.nan, flat).view(torch.int32)
    return (bits * _weights(1 << (flat.numel() - 1).bit_length(), flat.device)[: len(flat)]).sum()


@lru_cache(maxsize=64)
def _weights(count: int, device: torch.device) -> Tensor:
    """Return an odd 64-bit weight for each place; the first ones are the same for any count."""
    return _stir(torch.arange(1, count + 1, device=device) * _ODD) | 1


def _stir(x: Tensor) -> Tensor:
    """Let every bit depend on many: shifts and products modulo 2^64."""
    x = (x ^ (x >> 31)) * _STIR
    return x ^ (x >> 29)
