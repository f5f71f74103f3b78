"""The trace: a checksum that sees one bit of one result, and does not disturb what it watches."""

import math

import pytest
import torch

from seedless.portable.check.checksum import Trace
from seedless.portable.context import CONTEXT
from seedless.portable.mode import portable


def read(tensors, name="add"):
    trace = Trace()
    for tensor in tensors:
        trace.note(name, (tensor,), tensor)
    return trace.read()


X = torch.arange(-500.0, 500.0) / 7


@pytest.mark.parametrize("place", [0, 1, 499, 999])
def test_one_bit_shows(place):
    other = X.clone()
    other.view(torch.int32)[place] ^= 1
    assert read([X]) != read([other])


def test_opposite_changes_do_not_cancel():
    """One result up and another down by the same bit, at the same place."""
    up, down = X.clone(), X.clone()
    up.view(torch.int32)[3] += 1
    down.view(torch.int32)[3] -= 1
    assert read([X, X]) != read([up, down])
    swapped = X.clone()
    swapped[[1, 2]] = swapped[[2, 1]]
    assert read([X]) != read([swapped])


def test_order_and_layout_do_not_show():
    table = X.view(20, 50)
    turned = table.t().contiguous().t()
    assert read([X, X * 2]) == read([X * 2, X])
    assert read([table]) == read([turned])
    assert read([X]) == read([table])


def test_nans_are_one():
    one = torch.tensor([math.nan, 1.0])
    two = one.clone()
    two.view(torch.int32)[0] |= 1
    assert read([one]) == read([two])


def test_views_and_copies_are_left_out_and_a_fused_step_is_not():
    assert read([X], "view") == read([X], "clone") == "0:0000000000000000"
    trace = Trace()
    trace.note("_fused_adam_", ([X], [X], [X], [X], [], [X]), None)
    assert trace.count == 4


def test_watching_changes_no_bit_and_sees_forward_backward_and_step():
    results, traces = [], []
    for watched in (False, True, True):
        trace, weight = Trace(), X[:12].view(3, 4).clone().requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        with portable():
            if watched:
                with CONTEXT.observe_results_with(trace.note):
                    torch.autograd.backward(torch.tanh(weight @ weight.t()).sum())
                    forward = trace.count
                    optimizer.step()
            else:
                torch.autograd.backward(torch.tanh(weight @ weight.t()).sum())
                optimizer.step()
        results.append(weight.detach().clone())
        if watched:
            assert trace.count > forward > 4
            traces.append(trace.read())
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    assert traces[0] == traces[1]
