"""Does a device compute int8 matrix products exactly? Tested once, before the engine is used there.

Law: the int8 engine rests on exact int32 sums of products of digits. Some libraries add pairs of
products in int16, which saturates, and some devices have no int8 product at all. The engine is
compared with sums of Python's integers: for every pair of digits in every place, for the edges of
the range, for shapes that libraries treat differently, and for the longest sums of the largest
digits. One wrong sum, and the engine is refused on that device.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import mul

import torch

from seedless.core.errors import NumericsError
from seedless.portable.constants import PRODUCT_BITS
from seedless.portable.context import CONTEXT, ENGINE_VARIABLE, FLOAT64_ENGINE
from seedless.portable.exact.engines import find_engine, int8

Rows = list[list[int]]
Matrices = tuple[Rows, Rows]  # the rows of the left one, and the columns of the right one
_MAX_INTEGER = 1 << PRODUCT_BITS
_BASE = 1 << int8.DIGIT_BITS
_SHAPES = ((1, 1, 1), (2, 7, 3), (5, 128, 9), (23, 129, 33), (67, 300, 41))  # m, k, n


def _pair_digits() -> list[Matrices]:
    """Every digit times every digit, each in every place."""
    digits = range(-int8.MAX_DIGIT, int8.MAX_DIGIT + 1)
    values = [[digit * _BASE**place] for place in range(int8.DIGITS) for digit in digits]
    return [(values, values)]


def _mix_values() -> list[Matrices]:
    """Values from the whole range, of both signs, in several shapes, the edges among them."""
    largest = (1 << 24) // 2 - 1 - 0x8080  # of three digits of eight bits
    powers = [_BASE**place * factor for place in range(4) for factor in (1, 31, 32)]
    edges = [
        _MAX_INTEGER,
        _MAX_INTEGER - 1,
        largest,
        largest + 1,
        *powers,
        *(power - 1 for power in powers),
    ]
    signed = [0, *edges, *(-edge for edge in edges)]

    def make(count: int, length: int, factor: int) -> Rows:
        spread = [i * factor % (2 * _MAX_INTEGER + 1) - _MAX_INTEGER for i in range(count * length)]
        for i in range(0, len(spread), 3):
            spread[i] = signed[i // 3 * factor % len(signed)]
        return [spread[i : i + length] for i in range(0, len(spread), length)]

    return [(make(m, k, 7_919_317), make(n, k, 6_101_023)) for m, k, n in _SHAPES]


def _add_longest() -> list[Matrices]:
    """The longest sums that one int8 product adds, of the largest digits, of one sign and of both.

    The rows have the digits 32, 0, 0, 0 (2^23 itself), then 31 in each place and the reverse, then
    those in turns.
    """
    length = int8.MAX_INT8_ADDENDS
    largest = sum(31 * _BASE**place for place in range(int8.DIGITS))
    smallest = -sum(32 * _BASE**place for place in range(int8.DIGITS - 1)) - 31 * _BASE**3
    rows = [[value] * length for value in (_MAX_INTEGER, -_MAX_INTEGER, largest, smallest)]
    return [([*rows, [largest, smallest] * (length // 2)], rows[1:])]


CASES: dict[str, Callable[[], list[Matrices]]] = {
    "products of every pair of digits": _pair_digits,
    "sums over values of the whole range": _mix_values,
    "the longest sums of the largest digits": _add_longest,
}


def find_wrong_cases(device: torch.device) -> list[str]:
    """Return the names of the cases in which the int8 engine gives another sum than Python."""
    return [name for name, make in CASES.items() if not all(_is_exact(m, device) for m in make())]


def _is_exact(matrices: Matrices, device: torch.device) -> bool:
    """Return whether the engine's product of two matrices has the sums of Python's integers."""
    rows, columns = matrices
    p = torch.tensor([rows], dtype=torch.float64, device=device)
    q = torch.tensor([columns], dtype=torch.float64, device=device).mT
    high, low = int8.multiply_integers(p, q)
    upper, lower = high[0].tolist(), (high * 0 if low is None else low)[0].tolist()
    found = [
        [int(a) + int(b) for a, b in zip(*pair, strict=True)]
        for pair in zip(upper, lower, strict=True)
    ]
    return found == [[sum(map(mul, row, column)) for column in columns] for row in rows]


def check_engine(device: torch.device) -> None:
    """Refuse an unknown engine, and the int8 engine on a device whose sums are not exact.

    Float64 products are tested by `ieee_check`.
    """
    find_engine(device)
    if not CONTEXT.multiplies_in_float64(device) and device.type != "meta":
        check_int8_once(device)


@lru_cache(maxsize=64)
def check_int8_once(device: torch.device) -> None:
    """Test the int8 engine on the first use of a device."""
    advice = f"set {ENGINE_VARIABLE}={FLOAT64_ENGINE}, or use another device"
    try:
        wrong = find_wrong_cases(device)
    except RuntimeError as error:
        raise NumericsError(
            f"the engine int8 needs int8 matrix products on {device}, which has none: {error}; "
            f"{advice}"
        ) from None
    if wrong:
        raise NumericsError(
            f"expected exact int32 sums from the engine int8 on {device}; its int8 matrix products "
            f"give other sums there, in: {'; '.join(wrong)}. For exact products {advice}"
        )
