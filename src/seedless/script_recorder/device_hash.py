"""An exact hash of tensors on a device, computed there with integers.

With the bytes as 64-bit words w_i and fixed odd multipliers m_i, the hash of one piece is
sum(w_i * m_i) mod 2^64: a sum of integers does not depend on its order, and since each m_i is odd,
a change of one word always changes it. Pieces are combined by the same rule.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

WORD = 8
_split: Any = torch.split  # untyped in torch
PIECE_WORDS = 1 << 22  # 32 MiB: bounds the memory a digest takes


def hash_on_device(tensors: list[Tensor]) -> Tensor:
    """Return a 0-dimensional int64 tensor on the tensors' device; elements count in C order."""
    with torch.no_grad():
        device = tensors[0].device
        total = torch.zeros((), dtype=torch.int64, device=device)
        piece: list[Tensor] = []
        size = 0
        for tensor in tensors:
            flat = tensor.detach().reshape(-1).view(torch.uint8)
            for part in _split(flat, PIECE_WORDS * WORD):
                if size + part.numel() > PIECE_WORDS * WORD:
                    total = total * _ODD + _hash_piece(piece, size)
                    piece, size = [], 0
                piece.append(part)
                size += part.numel()
        return total * _ODD + _hash_piece(piece, size)


_ODD = 0x5851F42D4C957F2D  # Knuth's multiplier of a 64-bit linear congruential generator


def _hash_piece(parts: list[Tensor], size: int) -> Tensor:
    padding = -size % WORD
    if padding:
        parts = [*parts, torch.zeros(padding, dtype=torch.uint8, device=parts[0].device)]
    words = (torch.cat(parts) if len(parts) > 1 else parts[0].clone()).view(torch.int64)
    return (words * _make_multipliers(words.device)[: words.numel()]).sum()


@cache
def _make_multipliers(device: torch.device) -> Tensor:
    """Return PIECE_WORDS odd numbers of 64 bits that look random: a mixed counter."""
    numbers = torch.arange(1, PIECE_WORDS + 1, dtype=torch.int64, device=device)
    for shift, factor in ((32, -0x2917014799A6026D), (29, 0x1B03738712FAD5C9), (32, _ODD)):
        numbers = (numbers ^ (numbers >> shift)) * factor
    return (numbers ^ (numbers >> 31)) | 1
