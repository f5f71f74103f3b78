"""What the mode refuses, and how it says so: the op, the line it came from, and what to do."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from seedless.core.errors import NumericsError
from seedless.models.conversion import convert
from seedless.numerics.active_keys import dropout_keys
from seedless.portable.mode import portable
from seedless.portable.ops.registry import REGISTRY
from seedless.portable.test_inputs import Input

X = Input((10, 6)).make("x", torch.device("cpu"))


def test_an_unknown_op_is_refused_with_its_name_and_the_line_it_came_from():
    with portable(), pytest.raises(NumericsError) as refused:
        torch.linalg.qr(X)  # this very line
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "this very line" in text
    )
    assert "linalg_qr" in str(refused.value)
    assert f"{Path(__file__).name}:{line}" in str(refused.value)
    assert "outside" in str(refused.value)


def find_line(mark):
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


def make_leaf():
    return X.clone().requires_grad_()


class Odd(torch.autograd.Function):
    """Its forward pass is portable, its gradient is not."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.erfinv()  # the gradient


class Hidden(nn.Module):
    def forward(self, x):
        return nn.Sequential(nn.Identity(), nn.Flatten())(x).prod(1)  # the layer


class Own(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.copy_(parameter.erfinv())  # the step


@pytest.mark.parametrize(
    ("call", "op", "mark"),
    [
        (lambda: Hidden()(X), "aten.prod.dim_int", "the layer"),
        (
            lambda: Odd.apply(X.clone().requires_grad_()).sum().backward(),
            "aten.erfinv",
            "the gradient",
        ),
        (lambda: Own([X.clone()], {}).step(), "aten.erfinv", "the step"),
    ],
)
def test_a_refusal_names_op_and_line_in_forward_backward_and_step(call, op, mark):
    with portable(), pytest.raises(NumericsError) as refused:
        call()
    assert f"{op} is not portable" in str(refused.value)
    assert f"{Path(__file__).name}:{find_line(mark)}" in str(refused.value)
    assert ("OddBackward" in str(refused.value)) == (mark == "the gradient")
    assert "ops that have a portable form" in str(refused.value)


def test_a_library_beside_torch_whose_name_begins_like_torchs_is_named():
    file = f"{Path(torch.__file__).parent}vision/flow.py"
    names = {}
    exec(compile("def run(x):\n    return x.erfinv()", file, "exec"), names)
    with portable(), pytest.raises(NumericsError, match=r"torchvision/flow\.py:2"):
        names["run"](X)


def test_a_refusal_in_a_converted_model_names_the_line_of_the_model():
    """What makes its draws seed-free stands between the model and torch."""
    model = convert(nn.Sequential(Hidden(), nn.Dropout(0.1))).train()
    keys = dropout_keys(samples=torch.arange(len(X)), epoch=0)
    with keys, portable(), pytest.raises(NumericsError) as refused:
        model(X)
    assert f"{Path(__file__).name}:{find_line('the layer')}" in str(refused.value)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("anomaly", [False, True])
def test_a_gradient_without_a_portable_form_leads_back_to_its_forward_pass(monkeypatch, anomaly):
    with portable():
        pass  # the first block tests the kernels, with every overload
    monkeypatch.delitem(REGISTRY, "aten::gelu_backward")
    with torch.autograd.set_detect_anomaly(anomaly), portable():
        y = F.gelu(X.clone().requires_grad_()).sum()  # the forward pass
        with pytest.raises(NumericsError) as refused:
            y.backward()  # the backward pass
    line = find_line("the forward pass" if anomaly else "the backward pass")
    assert "aten.gelu_backward is not portable, in the backward pass" in str(refused.value)
    assert f"{Path(__file__).name}:{line}" in str(refused.value)
    assert ("detect_anomaly" in str(refused.value)) != anomaly


def test_an_op_of_someone_elses_library_is_refused():
    library = torch.library.Library("seedless_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    with portable(), pytest.raises(NumericsError, match="seedless_test::twice is not portable"):
        torch.ops.seedless_test.twice(X)


@pytest.mark.parametrize("draw_one", [F.dropout, torch.rand_like, lambda x: x.clone().normal_()])
def test_torchs_generator_is_refused(draw_one):
    with portable(), pytest.raises(NumericsError, match="generator"):
        draw_one(X)


def test_complex_numbers_are_refused_and_told_what_to_do():
    with portable(), pytest.raises(NumericsError, match=r"complex numbers out.*real matrices"):
        X.to(torch.complex64)


def test_half_and_double_are_refused():
    with portable(), pytest.raises(NumericsError, match="float32"):
        X.half() * 2
    with portable(), pytest.raises(NumericsError, match="cast to float32"):
        X.double() @ X.double().t()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.arange(0, 1, 0.1),
        lambda x: torch.round(x, decimals=2),
        lambda x: torch.scatter(x, 0, torch.zeros(1, 6, dtype=torch.int64), 1.0, reduce="add"),
        lambda x: torch.histc(x, 0),
        lambda x: torch.pow(-2.0, x),
        lambda x: x.norm(3),
        lambda x: F.embedding_bag(torch.zeros(2, 2, dtype=torch.int64), x, mode="max"),
    ],
)
def test_forms_of_an_op_that_may_differ_are_refused(call):
    with portable(), pytest.raises(NumericsError, match="portable"):
        call(X)
