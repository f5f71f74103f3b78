"""What is saved for a backward pass: unchanged, and no longer than the step."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.mode import portable


def test_a_change_in_place_before_the_backward_pass_is_refused() -> None:
    x, factor = torch.ones(3, requires_grad=True), torch.full((3,), 3.0)
    with portable():
        product, power = x * factor, x.exp()
        factor.add_(1)
        with pytest.raises(NumericsError, match=r"changed in place since, .*MulBackward0"):
            product.sum().backward()
        power.add_(1)
        with pytest.raises(NumericsError, match=r"changed in place since, .*ExpBackward0"):
            power.sum().backward()


def test_what_nobody_needs_may_change() -> None:
    x = torch.ones(3, requires_grad=True)
    with portable():
        (x.exp() + 1.0).add_(1).sum().backward()
    assert x.grad is not None


class _Marker:
    """Something that lives as long as the graph that its hook is on."""


def _hook(value: Tensor) -> weakref.ref[_Marker]:
    marker = _Marker()

    def hook(grad: Tensor, marker: _Marker = marker) -> None:
        del marker

    value.register_hook(hook)
    return weakref.ref(marker)


def test_a_forward_pass_without_a_backward_pass_leaves_nothing() -> None:
    with portable():
        x = torch.ones(3, requires_grad=True)
        y = x.exp()  # keeps its result
        alive = _hook(y)
        z = y.tanh()
    assert alive() is not None
    del y, z
    gc.collect()
    assert alive() is None


def test_second_derivatives_use_saved_tensors() -> None:
    x = torch.tensor([0.1, 0.5], requires_grad=True)
    with portable():
        (slope,) = torch.autograd.grad(x.exp().tanh().sum(), x, create_graph=True)
        (curve,) = torch.autograd.grad(slope.sum(), x)
    wide = x.detach().double().requires_grad_()
    (known,) = torch.autograd.grad(wide.exp().tanh().sum(), wide, create_graph=True)
    (bend,) = torch.autograd.grad(known.sum(), wide)
    assert torch.allclose(curve.double(), bend, rtol=1e-5)
