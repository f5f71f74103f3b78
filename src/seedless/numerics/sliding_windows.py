"""Windows that slide over time, shared by convolutions and pools.

A window of `kernel` samples starts every `stride` samples of a (batch, time, channel) sequence with
`padding` samples added at each end. "Tap j" is sample j of every window. All samples of one tap are
one strided slice of the padded sequence: reading a tap is slicing, and the gradient of reading it
adds to that slice. No operation scatters, so no two additions compete for one memory cell.
"""

from collections.abc import Iterable
from typing import Any, cast

import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError


def apply_function(function: type[Function], *arguments: Any) -> Tensor:
    """Return function.apply(*arguments), typed: torch leaves autograd Functions untyped."""
    return cast(Tensor, function.apply(*arguments))  # type: ignore[no-untyped-call]  # untyped in torch


def check_sequence(op: str, x: Tensor) -> None:
    """Refuse anything but a floating-point (batch, time, channel) tensor with no empty axis."""
    if x.ndim != 3 or not x.is_floating_point() or 0 in x.shape:
        raise NumericsError(
            f"{op} expects a floating-point (batch, time, channel) tensor, not empty; "
            f"got {x.dtype} of shape {tuple(x.shape)}"
        )


def count_windows(op: str, length: int, kernel: int, stride: int, padding: int) -> int:
    """Return the number of windows that fit; refuse settings that are invalid or leave none."""
    check_integer(f"{op}'s kernel", kernel, 1, error=NumericsError)
    check_integer(f"{op}'s stride", stride, 1, error=NumericsError)
    check_integer(f"{op}'s padding", padding, 0, error=NumericsError)
    if length + 2 * padding < kernel:
        raise NumericsError(
            f"{op} expects at least kernel = {kernel} samples of time with padding; "
            f"got {length} + 2 x {padding}; use longer input or more padding"
        )
    return (length + 2 * padding - kernel) // stride + 1


def pad_time(x: Tensor, padding: int, value: float = 0.0) -> Tensor:
    """Return x with `padding` samples of `value` added at both ends of time."""
    return F.pad(x, (0, 0, padding, padding), value=value) if padding else x


def take_tap(padded: Tensor, tap: int, windows: int, stride: int) -> Tensor:
    """Return sample `tap` of every window: (batch, windows, channel), a view."""
    return padded[:, tap : tap + (windows - 1) * stride + 1 : stride]


def add_taps(taps: Iterable[Tensor], length: int, stride: int, padding: int) -> Tensor:
    """Return the sum of all taps, each added at the samples where `take_tap` reads it.

    This is the gradient of reading taps 0, 1, ..., given as (batch, windows, channel) each. The
    result is (batch, length, channel); values that fall on the padding are dropped. Each addition
    is one elementwise operation on one slice, so the order of additions is fixed.
    """
    total: Tensor | None = None
    for tap, part in enumerate(taps):
        if total is None:
            total = part.new_zeros(part.shape[0], length, part.shape[2])
        shift = tap - padding
        first = max(0, -(shift // stride))  # the first window whose tap is not on the left padding
        last = min(part.shape[1] - 1, (length - 1 - shift) // stride)
        if first <= last:
            start, stop = first * stride + shift, last * stride + shift + 1
            # Not `total[...] += part`, which would write the sum once more, on itself.
            total[:, start:stop:stride].add_(part[:, first : last + 1])
    if total is None:
        raise NumericsError("add_taps expects at least one tap; got none")
    return total
