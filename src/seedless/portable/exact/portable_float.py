"""Numbers of an optimizer whose powers do not depend on the host's math library.

Law: +, -, * and / of Python's floats are IEEE's. ``**`` calls the host's library, whose results
differ between versions; here it is a product for each bit of a whole exponent, a square root, which
IEEE defines, or exp(y log x) from `exact.elementary`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from seedless.portable.exact import elementary as e

MAX_WHOLE_EXPONENT = 1 << 24  # steps that a float32 counts exactly


def raise_number(x: float, y: float) -> float:
    """Return x^y, with the same bits on every machine; NaN for a root of a negative number.

    Example:
        >>> raise_number(0.5, 3)
        0.125
    """
    if float(y).is_integer() and abs(y) <= MAX_WHOLE_EXPONENT:
        out, base, bits = 1.0, float(x), abs(int(y))
        while bits:
            out = out * base if bits & 1 else out
            base, bits = base * base, bits >> 1
        return out if y >= 0 else (1.0 / out if out else math.inf)
    if y in (0.5, -0.5):
        root = math.sqrt(x) if x >= 0 else math.nan
        return root if y > 0 else (1.0 / root if root else math.inf)
    with _disable_current_modes():
        value = torch.tensor(float(x), dtype=torch.float64, device="cpu")
        return float(e.raise_power(value, float(y)))


class PortableFloat(float):
    """A float whose powers are `raise_number`'s; what is computed from it is one too."""

    def __pow__(self, other: Any, modulo: None = None) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        return PortableFloat(raise_number(self, float(other)))

    def __rpow__(self, other: Any, modulo: None = None) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        return PortableFloat(raise_number(float(other), self))

    def __add__(self, other: Any) -> Any:
        return _keep(float.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return _keep(float.__radd__(self, other))

    def __sub__(self, other: Any) -> Any:
        return _keep(float.__sub__(self, other))

    def __rsub__(self, other: Any) -> Any:
        return _keep(float.__rsub__(self, other))

    def __mul__(self, other: Any) -> Any:
        return _keep(float.__mul__(self, other))

    def __rmul__(self, other: Any) -> Any:
        return _keep(float.__rmul__(self, other))

    def __truediv__(self, other: Any) -> Any:
        return _keep(float.__truediv__(self, other))

    def __rtruediv__(self, other: Any) -> Any:
        return _keep(float.__rtruediv__(self, other))

    def __neg__(self) -> PortableFloat:
        return PortableFloat(-float(self))


def _keep(result: Any) -> Any:
    """Return a result of float's operation as a portable number, or NotImplemented as it is."""
    return result if result is NotImplemented else PortableFloat(result)
