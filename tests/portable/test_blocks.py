"""How a computation is cut into blocks, chunks and scratch memory cannot be seen in its bits."""

from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F

from seedless.portable.check.op_cases import Input
from seedless.portable.context import CONTEXT
from seedless.portable.exact import product
from seedless.portable.exact.engines import float64
from seedless.portable.kernels import products
from seedless.portable.mode import portable
from seedless.portable.ops import elementwise, optimizer

CPU = torch.device("cpu")


@pytest.fixture(autouse=True, params=["kernels", "without kernels"])
def _both_ways(request):
    with CONTEXT.without_kernels() if request.param == "without kernels" else nullcontext():
        yield


X = Input((37, 19), 4.0).make("x", CPU)
OPS = {
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "silu": F.silu,
    "softmax": lambda x: x.softmax(-1),
    "softmax of columns": lambda x: x.softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, [19], x[0].detach() + 5, x[1].detach()),
    "transposed": lambda x: torch.sigmoid(x.t()).softmax(-1),
    "linear": lambda x: x @ x.t() @ x,
}


def bits(run):
    x = X.clone().requires_grad_()
    with portable():
        y = run(x)
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y) * 0.3)
    return y.detach(), grad


@pytest.mark.parametrize("name", OPS)
def test_blocks_do_not_show(name, monkeypatch):
    whole = bits(OPS[name])
    for size in (1, 50, 100):
        monkeypatch.setattr(elementwise, "BLOCK_ELEMENTS", size)
        monkeypatch.setattr(product, "MAX_PRODUCT_ADDENDS", min(size, 128))
        monkeypatch.setattr(float64, "MAX_PRODUCT_ADDENDS", min(size, 128))
        monkeypatch.setattr(float64, "MIN_CHUNKED_ELEMENTS", 1)
        assert all(map(torch.equal, whole, bits(OPS[name])))


@pytest.mark.parametrize("most", [0, 1 << 23])
def test_scratch_memory_does_not_show(monkeypatch, most):
    """A large product leaves its numbers behind; a small one must not read them."""
    left, right = Input((1, 40, 300)).make("l", CPU), Input((1, 300, 30)).make("r", CPU)
    plain = product.multiply(left, right)
    monkeypatch.setattr(float64, "MIN_CHUNKED_ELEMENTS", 1)
    monkeypatch.setattr(products, "MAX_SCRATCH_ELEMENTS", most)
    product.multiply(left.repeat(1, 3, 2) * 1e9, right.repeat(1, 2, 5) * 1e9)
    assert torch.equal(product.multiply(left, right), plain)


def step(options, strided):
    tensors = [Input((n, 7)).make(f"p{n}", CPU) for n in (1, 4, 30)]
    parameters = [t.t() if strided and len(t) == 4 else t for t in tensors]
    parameters = [p.requires_grad_() for p in parameters]
    optimizer = torch.optim.AdamW(parameters, lr=0.1, **options)
    for number in range(3):
        for p in parameters[: 3 - number % 2]:  # the last one misses a step
            p.grad = Input(tuple(p.shape)).make(f"g{number}", CPU)
        with portable():
            optimizer.step()
        optimizer.zero_grad()
    return [p.detach().clone() for p in parameters]


@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "maximize": True}])
@pytest.mark.parametrize("strided", [False, True])
def test_parameters_stepped_together_are_stepped_as_alone(options, strided, monkeypatch):
    together = step(options, strided)
    for size in (1, 10, 64):
        monkeypatch.setattr(optimizer, "BLOCK_ELEMENTS", size)
        assert all(map(torch.equal, together, step(options, strided)))


def test_float64_inputs_are_left_as_they_are():
    x = X.double().requires_grad_()
    before = x.detach().clone()
    with portable():
        y = torch.exp(x).softmax(-1)
        grad = torch.ones_like(y)
        torch.autograd.grad(y, x, grad)
    assert torch.equal(x, before)
    assert grad.eq(1).all()
