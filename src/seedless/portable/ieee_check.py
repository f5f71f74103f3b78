"""Does a device's float64 follow IEEE? Checked once for each device, before anything is computed.

Each check is a small computation whose result is known from exact integers. A contracted
multiply-add, a flushed denormal, a wrong rounding or an emulated product gives another result.
"""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.context import CONTEXT

Make = Callable[..., Tensor]
_CHECKED_ELEMENTS = 70  # several vectors of a SIMD kernel, and a rest
_ELEMENTS_PER_THREAD = 1 << 15  # from which torch uses another thread of a CPU


def _separate(make: Make) -> bool:
    """(1 + 2^-30)(1 - 2^-30) - 1 is 0 when the product is rounded, -2^-60 when it is fused."""
    out = make(1 + 2.0**-30) * make(1 - 2.0**-30)
    return bool((out + make(-1.0) == 0).all())


def _round_sum(make: Make) -> bool:
    """Ties go to even: 1 + 2^-53 is 1, (1 + 2^-52) + 2^-53 is 1 + 2^-51."""
    down = make(1.0) + make(2.0**-53)
    up = make(1 + 2.0**-52) + make(2.0**-53)
    return bool(((down == 1) & (up == 1 + 2.0**-51)).all())


def _divide(make: Make) -> bool:
    """49 (1 / 49) is not 1, and 1 / 49, 10 / 3 have their known bits."""
    known = (make(1.0) / make(49.0) == float.fromhex("0x1.4e5e0a72f0539p-6")) & (
        make(10.0) / make(3.0) == float.fromhex("0x1.aaaaaaaaaaaabp+1")
    )
    return bool(known.all())


def _denormals(make: Make) -> bool:
    """The smallest float64 and float32 survive a sum and a product.

    Compared by their bits: a processor that reads denormals as zero finds them equal to zero.
    """
    tiny = (make(5e-324) + make(5e-324)).view(torch.int64) == 2
    small = make(2.0**-149).to(torch.float32)
    doubled = (small + small).view(torch.int32) == 2
    halved = make(2.0**-126).to(torch.float32) * make(0.5).to(torch.float32)
    return bool((tiny & doubled & (halved.view(torch.int32) == 1 << 22)).all())


def _narrow(make: Make) -> bool:
    """Float64 becomes the nearest float32, ties to even."""
    down = make(1 + 2.0**-24).to(torch.float32) == 1
    up = make(1 + 3 * 2.0**-24).to(torch.float32) == 1 + 2.0**-22
    return bool((down & up & (torch.round(make(2.5)) == 2)).all())


def _product(make: Make) -> bool:
    """A matrix product of integers of 23 bits is exact over 128 terms, unlike float32's.

    Where another engine multiplies, none is computed in float64, and `engine_check` tests that one.
    """
    device = make(0.0).device
    if not CONTEXT.multiplies_in_float64(device):
        return True
    index = torch.arange(128, device=device)
    left = (2**23 - 1 - index * 7919 % 5003).to(torch.float64).expand(5, 128)
    right = (2**23 - 2 - index * 6101 % 4001).to(torch.float64).expand(6, 128).t()
    exact = sum((2**23 - 1 - i * 7919 % 5003) * (2**23 - 2 - i * 6101 % 4001) for i in range(128))
    return bool((torch.bmm(left[None], right[None]) == float(exact)).all())


CHECKS: dict[str, Callable[[Make], bool]] = {
    "a product and a sum in two kernels round twice": _separate,
    "float64 sums round to nearest, ties to even": _round_sum,
    "float64 quotients are correctly rounded": _divide,
    "denormal numbers are kept": _denormals,
    "float64 rounds to the nearest float32": _narrow,
    "float64 matrix products of small integers are exact": _product,
}


def check_device(device: torch.device) -> None:
    """Refuse a device whose float64 breaks a rule that portable arithmetic depends on."""

    def make(value: float) -> Tensor:
        return torch.full((_CHECKED_ELEMENTS,), value, dtype=torch.float64, device=device)

    try:
        broken = [rule for rule, holds in CHECKS.items() if not holds(make)]
    except (RuntimeError, TypeError) as error:
        raise NumericsError(
            f"portable arithmetic needs float64 on {device}, which has none: {error}; use a CPU or "
            "a GPU with float64"
        ) from None
    if broken:
        raise NumericsError(
            f"portable arithmetic needs IEEE float64 on {device}; these rules do not hold there: "
            f"{'; '.join(broken)}. Switch flushing of denormals and emulated products off, or use "
            "another device"
        )


@lru_cache(maxsize=64)
def check_once(device: torch.device) -> None:
    """Check a device on its first use."""
    check_device(device)


@lru_cache(maxsize=64)
def check_threads(count: int) -> None:
    """Check once that none of a CPU's threads flushes denormals.

    Each thread has a switch of its own, copied from the thread that started it.
    """
    small = torch.full(
        (_ELEMENTS_PER_THREAD * count,), 2.0**-149, dtype=torch.float32, device="cpu"
    )
    if not bool(((small + small).view(torch.int32) == 2).all()):
        raise NumericsError(
            f"expected all {count} threads of the CPU to keep denormal numbers; some flush them to "
            "zero, as torch.set_flush_denormal(True) was on when they were started. Leave it off, "
            "or compute with one thread"
        )
