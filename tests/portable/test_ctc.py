"""Connectionist temporal classification: torch's values in float64, for any number of threads."""

import math

import pytest
import torch
import torch.nn.functional as F

from seedless.portable.mode import portable
from seedless.portable.test_inputs import Input

TARGETS = torch.tensor([[1, 2, 2], [3, 1, 4], [2, 0, 0], [1, 1, 1]])
LENGTHS = torch.tensor([3, 3, 1, 3])
STEPS = torch.tensor([9, 7, 4, 9])
SCORES = Input((9, 4, 5), 3.0).make("ctc", torch.device("cpu"))


def run(dtype, targets=TARGETS, steps=STEPS, lengths=LENGTHS, **options):
    x = SCORES.clone().to(dtype).requires_grad_()
    loss = F.ctc_loss(x.log_softmax(2), targets, steps, lengths, **options)
    loss.sum().backward()
    return loss.detach(), x.grad


@pytest.mark.parametrize(
    "options",
    [
        {"reduction": "none"},
        {"reduction": "mean"},
        {"targets": torch.tensor([1, 2, 2, 3, 1, 4, 2, 1, 1, 1]), "reduction": "sum"},
        {"lengths": torch.tensor([3, 0, 1, 3]), "reduction": "none"},
        {"steps": STEPS.tolist(), "lengths": LENGTHS.tolist()},
        {"blank": 4, "targets": TARGETS.clamp(max=3)},
        {"steps": torch.tensor([9, 2, 4, 4]), "reduction": "none", "zero_infinity": True},
    ],
)
def test_loss_and_gradient_are_torchs(options):
    with portable():
        loss, grad = run(torch.float32, **options)
    expected, slope = run(torch.float64, **options)
    assert torch.allclose(loss.double(), expected, rtol=1e-6, atol=1e-6)
    assert torch.allclose(grad.double(), slope, atol=1e-6)


def test_a_target_longer_than_its_input_has_an_infinite_loss_and_no_gradient():
    with portable():
        loss, grad = run(torch.float32, steps=torch.tensor([9, 2, 4, 4]), reduction="none")
    assert [math.isinf(one) for one in loss.tolist()] == [False, True, False, True]
    assert grad.isnan().any((0, 2)).tolist() == [False, True, False, True]


def test_the_bits_do_not_depend_on_threads():
    scores = Input((40, 300, 20), 3.0).make("threads", torch.device("cpu"))
    targets = torch.arange(300 * 6).view(300, 6) * 7 % 19 + 1
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            x = scores.clone().requires_grad_()
            with portable():
                F.ctc_loss(x.log_softmax(2), targets, [40] * 300, [6] * 300).backward()
            found.append(x.grad)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


@pytest.mark.parametrize("lengths", [(STEPS, LENGTHS), (STEPS.tolist(), LENGTHS.tolist())])
def test_on_a_gpu_no_library_is_asked_to_compute_it(lengths):
    """torch.ctc_loss asks there; these are the questions, put by hand."""
    overload = "Tensor" if isinstance(lengths[0], torch.Tensor) else "default"
    question = getattr(torch.ops.aten._use_cudnn_ctc_loss, overload)
    with portable():
        assert question(SCORES.log_softmax(2), TARGETS, *lengths, 0) is False
