"""The gamma function's logarithm and derivatives: close to the true value, poles as in torch."""

import math

import mpmath
import numpy as np
import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import draw_uniform
from seedless.portable.exact import gamma
from seedless.portable.mode import portable

TRUE = {
    "lgamma": lambda v: mpmath.log(abs(mpmath.gamma(v))),
    "digamma": mpmath.digamma,
    "trigamma": lambda v: mpmath.psi(1, v),
}
TORCHS = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "trigamma": lambda x: torch.polygamma(1, x),
}


def points(name):
    uniform = draw_uniform(0, name, 160)
    spread = np.concatenate(
        [uniform[:60] * 30, 1 + (uniform[60:80] - 0.5) * 1e-4, 2 + (uniform[80:100] - 0.5) * 1e-4]
    )
    below = -uniform[100:] * 20
    return torch.from_numpy(np.concatenate([spread, below]).astype(np.float32)).double()


@pytest.mark.parametrize("name", sorted(TRUE))
def test_a_function_is_close_to_the_true_value(name):
    x = points(name)
    with mpmath.workprec(120):
        true = [float(TRUE[name](mpmath.mpf(value))) for value in x.tolist()]
    found = getattr(gamma, name)(x).tolist()
    for value, exact in zip(found, true, strict=True):
        # Below zero and near the zero of digamma the formula subtracts numbers of this size.
        assert abs(value - exact) <= 2.0**-40 * abs(exact) + 2.0**-45


@pytest.mark.parametrize("name", sorted(TORCHS))
def test_special_values_are_torchs(name):
    x = torch.tensor([0.0, -0.0, 1.0, 2.0, math.inf, math.nan, -math.inf, -2.0])
    if name == "trigamma":
        x = x[:-1]  # torch returns a large number at a pole, not infinity
    with portable():
        found = TORCHS[name](x)
    assert torch.allclose(found, TORCHS[name](x), equal_nan=True, atol=1e-6)


def test_the_gradient_of_lgamma_is_digamma_and_its_gradient_trigamma():
    x = torch.linspace(0.3, 9.0, 30).requires_grad_()
    with portable():
        (first,) = torch.autograd.grad(torch.lgamma(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert torch.equal(first, torch.digamma(x))
        assert torch.equal(second, torch.polygamma(1, x))
        with pytest.raises(NumericsError, match="orders 0 and 1, got 2"):
            torch.polygamma(2, x)
