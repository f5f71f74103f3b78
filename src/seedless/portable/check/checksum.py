"""A checksum over every float32 that any op computes, forward, backward and in the optimizer.

Final weights can agree although one gradient on the way differed; this checksum then differs.

Law: the checksum of a result is the sum of its values' bits, each times a 64-bit weight of its
position, modulo 2^64, with the bits mixed; the checksums of all results are added. Integer sums
are the same in any order, so the order of independent ops does not matter, nor that of a device.
Views, copies and fills compute nothing and are left out. All NaNs count as the same value.
"""

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from seedless.portable.ops.registry import COMPUTING, REPLACED

# Odd factors without a pattern in their bits, as signed 64-bit integers.
_POSITION_FACTOR, _MIX_FACTOR = -7046029254386353131, -4658895280553007687
_MAX_PENDING = 4096  # checksums of results before they are added up


class Trace:
    """The checksum of what was computed so far, and of how many results."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0
        self._pending: list[Tensor] = []

    def note(self, name: str, args: tuple[Any, ...], out: Any) -> None:
        """Include what an op returned, or wrote into its first arguments if it returns nothing."""
        base = name.removeprefix("_foreach_").rstrip("_")
        if base in REPLACED or base in COMPUTING or name in REPLACED:
            written = args[:4] if name.startswith("_fused_") else args[:1]
            self._include(written if out is None else out)

    def _include(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            for part in value:
                self._include(part)
        elif isinstance(value, Tensor) and value.dtype == torch.float32 and value.numel():
            self.count += 1
            self._pending.append(_compute_checksum(value))
            if len(self._pending) >= _MAX_PENDING:
                self._add_pending()

    def _add_pending(self) -> None:
        if self._pending:
            for device in {one.device for one in self._pending}:
                sums = torch.stack([one for one in self._pending if one.device == device])
                self._total += int(_mix_bits(sums).sum())
            self._pending = []

    def read(self) -> str:
        """Return the number of results and 16 hex digits."""
        self._add_pending()
        return f"{self.count}:{self._total % (1 << 64):016x}"


def _compute_checksum(value: Tensor) -> Tensor:
    flat = value.reshape(-1)
    bits = torch.where(flat != flat, math.nan, flat).view(torch.int32)
    return (bits * _weights(1 << (flat.numel() - 1).bit_length(), flat.device)[: len(flat)]).sum()


@lru_cache(maxsize=64)
def _weights(count: int, device: torch.device) -> Tensor:
    """Return an odd 64-bit weight for each position; the first ones are the same for any count."""
    return _mix_bits(torch.arange(1, count + 1, device=device) * _POSITION_FACTOR) | 1


def _mix_bits(x: Tensor) -> Tensor:
    """Make every bit depend on many others: shifts and products modulo 2^64."""
    x = (x ^ (x >> 31)) * _MIX_FACTOR
    return x ^ (x >> 29)
