"""Tensors as bytes of one message, and back."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.batch.plain_torch import plain_torch

HEAD_BYTES = 16  # two int64 words before the tensors


def pack(tensors: Sequence[Tensor], words: tuple[int, int]) -> Tensor:
    """Return two words and tensors as bytes, uint8 (n,)."""
    with plain_torch():
        device = tensors[0].device
        head = torch.tensor(list(words), dtype=torch.int64, device=device)
        parts = [head, *(tensor.contiguous() for tensor in tensors if tensor.numel())]
        return torch.cat([part.view(-1).view(torch.uint8) for part in parts])


def read_words(payload: Tensor) -> tuple[int, int]:
    """Return the two words at the head of what `pack` made."""
    count, layout = payload[:HEAD_BYTES].clone().view(torch.int64).tolist()
    return count, layout


def unpack(
    payloads: Sequence[Tensor], counts: Sequence[int], like: Sequence[Tensor]
) -> list[Tensor]:
    """Return the tensors of all processes, joined along the samples."""
    with plain_torch():
        pieces: list[list[Tensor]] = [[] for _ in like]
        for payload, count in zip(payloads, counts, strict=True):
            start = HEAD_BYTES
            for number, tensor in enumerate(like):
                shape = (count, *tensor.shape[1:])
                end = start + math.prod(shape) * tensor.element_size()
                piece = payload[start:end].clone().view(tensor.dtype).view(shape)
                pieces[number].append(piece)
                start = end
        return [torch.cat(each) for each in pieces]
