"""Random crop and flip as pure functions of (sample, epoch): no generator, no state.

A sample gets the same crop at any place in a batch and after any restart.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.core.errors import DataError
from seedless.numerics.counter_random import WORD_MASK, philox

_COUNTER_WORD = 0x61756731  # unlike any layer number, which dropout has in its place


def crop_and_flip(
    x: Tensor, *, samples: Tensor, epoch: Tensor | int, padding: int, flip: bool = True
) -> Tensor:
    """Return images (B, C, H, W) shifted by up to ``padding`` pixels, half of them mirrored.

    Edges are filled with zeros before the crop. ``samples`` holds one int64 key for each image,
    such as `seedless.sample_keys` of it; key and epoch decide everything.
    """
    if x.ndim != 4 or samples.shape != x.shape[:1] or samples.dtype != torch.int64:
        raise DataError(
            f"crop_and_flip expects images (B, C, H, W) and one int64 key for each, got shapes "
            f"{tuple(x.shape)} and {tuple(samples.shape)}, {samples.dtype}"
        )
    # [Step 1] The source row and column of each pixel in the padded image.
    down, right, mirrored = draw_shifts(samples.to(x.device), epoch, padding)
    height, width = x.shape[2:]
    rows = torch.arange(height, device=x.device)[None, :] + down[:, None]
    columns = torch.arange(width, device=x.device)[None, :].expand(len(x), -1)
    if flip:
        columns = torch.where(mirrored[:, None], width - 1 - columns, columns)
    columns = columns + right[:, None]
    # [Step 2] Gather rows, then columns.
    padded = F.pad(x, (padding,) * 4).permute(0, 2, 3, 1)
    wide, channels = padded.shape[2:]
    cropped = padded.gather(1, rows[:, :, None, None].expand(-1, -1, wide, channels))
    picked = cropped.gather(2, columns[:, None, :, None].expand(-1, height, -1, channels))
    images = picked.permute(0, 3, 1, 2)
    if x.device.type != "cpu":
        return images
    # [Step 3] Store them channel by channel. In the layout of step 2, the backward pass of a
    # strided 1x1 convolution of fewer than 16 channels writes out of bounds on CPUs with AVX-512,
    # and the process crashes (uxlfoundation/oneDNN#6035; seen in torch 2.11, 2.13 and 2.15). It is
    # a clone because `contiguous` leaves the strides of images of one channel as they are.
    return images.clone(memory_format=torch.contiguous_format)


def draw_shifts(
    samples: Tensor, epoch: Tensor | int, padding: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (down, right) in 0 .. 2 padding and whether to mirror, for each sample key (B,).

    A shift is floor(word * (2 padding + 1) / 2^32) of a Philox word.
    """
    zero = torch.zeros_like(samples)
    words = philox(
        (zero, zero + _COUNTER_WORD, zero + epoch, zero),
        (samples & WORD_MASK, (samples >> 32) & WORD_MASK),
    )
    span = 2 * padding + 1
    return words[0] * span >> 32, words[1] * span >> 32, words[2] < 1 << 31
