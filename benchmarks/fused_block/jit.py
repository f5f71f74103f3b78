"""Triton where it is installed, and the device functions that both kernels share.

Without Triton the kernels stay plain Python functions that nothing calls: the modules that plan
tiles and count bytes can be imported and tested everywhere.
"""

# ruff: noqa: N803  # Triton's constants are written in capitals

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # no kernel can be launched
    triton = tl = None


def jit(function: Callable[..., Any]) -> Any:
    """Return the function as a Triton kernel, or itself where there is no Triton."""
    return function if triton is None else triton.jit(function)


def is_interpreted() -> bool:
    """Return whether kernels run in Triton's interpreter, on a CPU (TRITON_INTERPRET=1)."""
    return triton is not None and bool(triton.knobs.runtime.interpret)


INTERPRETED = None if triton is None else tl.constexpr(is_interpreted())


@jit
def half_erf(z):
    """Return the normal distribution function at z, the factor of GELU: z times it is GELU(z)."""
    return 0.5 + 0.5 * tl.math.erf(z * 0.7071067811865476)


@jit
def gelu_slope(z, phi):
    """Return the derivative of GELU at z; ``phi`` is `half_erf` of z."""
    return phi + z * (0.3989422804014327 * tl.exp(-0.5 * z * z))


@jit
def as_operand(value, BF16: tl.constexpr):
    """Return a value as matrix products read it: rounded to bfloat16, or as it is."""
    return value.to(tl.bfloat16) if BF16 else value


@jit
def rounded(value, BF16: tl.constexpr):
    """Return a float32 value as autocast would store it between two operations."""
    return value.to(tl.bfloat16).to(tl.float32) if BF16 else value


@jit
def product(left, right, total, PRECISION: tl.constexpr):
    """Return left @ right + total; ``PRECISION`` is "ieee", "tf32" or "tf32x3" for float32."""
    if INTERPRETED:  # it multiplies bfloat16 wrongly; the same values in float32 are exact
        left, right = left.to(tl.float32), right.to(tl.float32)
    return tl.dot(left, right, total, input_precision=PRECISION)


@jit
def wait_for_stores():
    """Let every thread of a program see what its other threads stored in global memory."""
    if not INTERPRETED:  # which runs one operation of all threads after the other
        tl.debug_barrier()


@jit
def pool_first(bin_, length, bins):
    """Return the first of ``length`` samples that adaptive bin number ``bin_`` averages."""
    return bin_ * length // bins


@jit
def pool_last(bin_, length, bins):
    """Return the last of ``length`` samples that adaptive bin number ``bin_`` averages."""
    return ((bin_ + 1) * length - 1) // bins
