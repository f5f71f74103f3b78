"""Gradients that no split of a batch can change: added without any rounding, sample by sample.

Law: a sum of float32 tensors is held as integers of 40 bits on the fixed grids 2^0, 2^-40, ...,
2^-160, which hold every float32 below 2^40 exactly. Integer addition is associative and
commutative, so neither order nor split nor the machine that added a part shows; the sum is rounded
when it is read. Up to 2^22 addends; a value that is no such number makes its element NaN.

Only gradients of one sample at a time qualify: within a batch, samples share grids. A BatchNorm in
training mode depends on the whole batch by definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.numerics.portable.mode import is_active
from seedless.numerics.portable.reduce import divide

LIMB = 40
EXPONENTS = (0, -40, -80, -120, -160)
LARGEST = 2.0**LIMB


class Accumulator:
    """An exact sum of float32 tensors of one shape."""

    def __init__(self, like: Tensor) -> None:
        shape, device = like.shape, like.device
        self.limbs = [torch.zeros(shape, dtype=torch.int64, device=device) for _ in EXPONENTS]
        self.bad = torch.zeros(shape, dtype=torch.bool, device=device)

    def add(self, x: Tensor) -> None:
        """Add one tensor."""
        fits = x.abs() < LARGEST  # False for NaN
        self.bad = self.bad | ~fits
        rest = torch.where(fits, x, torch.zeros_like(x)).to(torch.float64)
        for limb, exponent in zip(self.limbs, EXPONENTS, strict=True):
            q = (rest * 2.0**-exponent).round_()
            limb += q.to(torch.int64)
            rest = rest - q * 2.0**exponent  # exact: a float32 has 24 bits

    def merge(self, other: Accumulator) -> None:
        """Add what another one holds: a part of the batch, perhaps from another machine."""
        for limb, more in zip(self.limbs, other.limbs, strict=True):
            limb += more.to(limb.device)
        self.bad = self.bad | other.bad.to(self.bad.device)

    def value(self) -> Tensor:
        """Return the sum in float64, a function of the exact sum alone."""
        carried, carry = [], torch.zeros_like(self.limbs[0])
        for limb in reversed(self.limbs[1:]):  # each into [-2^39, 2^39): then no other form is left
            limb = limb + carry
            carry = (limb + (1 << (LIMB - 1))) >> LIMB
            carried.append(limb - (carry << LIMB))
        carried.append(self.limbs[0] + carry)
        out = torch.zeros_like(carry, dtype=torch.float64)
        for limb, exponent in zip(carried, reversed(EXPONENTS), strict=True):
            out = out + limb.to(torch.float64) * 2.0**exponent
        return torch.where(self.bad, torch.full_like(out, float("nan")), out)


class Gradients:
    """The mean gradient of a batch, gathered from the losses of single samples."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters: Sequence[nn.Parameter] = [p for p in parameters if p.requires_grad]
        self.sums = [Accumulator(parameter) for parameter in self.parameters]
        self.samples = 0

    def add(self, loss: Tensor) -> None:
        """Add the gradient of one sample's loss, computed from that sample alone."""
        if not is_active():
            raise NumericsError(
                "expected gradients to be gathered inside `with portable():`, where their bits do "
                "not depend on the machine; got a loss outside. Move forward and add() inside"
            )
        grads = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        with torch.no_grad():
            for total, grad in zip(self.sums, grads, strict=True):
                if grad is not None:
                    total.add(grad)
        self.samples += 1

    def merge(self, other: Gradients) -> None:
        """Add another part of the batch."""
        for total, more in zip(self.sums, other.sums, strict=True):
            total.merge(more)
        self.samples += other.samples

    def write(self) -> None:
        """Set each parameter's gradient to the mean over all samples, rounded to float32."""
        if not self.samples:
            raise NumericsError("expected the losses of some samples, got none; call add() first")
        for parameter, total in zip(self.parameters, self.sums, strict=True):
            parameter.grad = divide(total.value(), float(self.samples)).to(parameter.dtype)
