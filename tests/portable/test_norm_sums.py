"""Sums for a norm's weight and bias from float32 tensors have the bits of those from addends."""

import math

import pytest
import torch

from seedless.portable.context import CONTEXT
from seedless.portable.ops.norm import layer_norm, layer_norm_backward
from seedless.portable.ops.norm_sums import sum_norm_gradients
from tests.portable.test_microbatch import make_uniform


def compute(x, grad, shape):
    """Return the gradients by kernels that are asked for sums, and by torch's own ops."""
    weight, bias = make_uniform("weight", *shape) + 1, make_uniform("bias", *shape)
    _, centre, scale = layer_norm(x, shape, weight, bias, 1e-5)
    found = sum_norm_gradients(grad, x, shape, centre, scale, (True, True))
    with CONTEXT.without_kernels():
        assert sum_norm_gradients(grad, x, shape, centre, scale, (True, True)) is None
        _, *plain = layer_norm_backward(
            grad, x, shape, centre, scale, weight, bias, (False, True, True)
        )
    return found, plain


@pytest.mark.parametrize(("lead", "shape"), [((7,), (5,)), ((3, 40), (16,)), ((6,), (4, 3))])
def test_they_have_the_bits_of_the_sums_of_addends(lead, shape):
    x, grad = make_uniform("x", *lead, *shape) * 3, make_uniform("grad", *lead, *shape)
    grad[0] *= 1e-20
    found, plain = compute(x, grad, shape)
    assert found is not None, "this machine compiles no kernel"
    for one, other in zip(found, plain, strict=True):
        assert one.shape == other.shape
        assert torch.equal(one.view(torch.int32), other.view(torch.int32))


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_not_finite_stays_so(bad):
    x, grad = make_uniform("x", 8, 6), make_uniform("grad", 8, 6)
    grad[3, 2] = bad
    found, plain = compute(x, grad, (6,))
    for one, other in zip(found, plain, strict=True):
        assert not one[2].isfinite()
        assert torch.equal(one.nan_to_num(nan=7.0), other.nan_to_num(nan=7.0))


def test_only_what_is_asked_for_is_summed():
    x, grad = make_uniform("x", 8, 6), make_uniform("grad", 8, 6)
    _, centre, scale = layer_norm(x, [6], None, None, 1e-5)
    weight, bias = sum_norm_gradients(grad, x, [6], centre, scale, (False, True))
    assert weight is None
    assert bias.shape == (6,)
