"""One weak spot is enough to be seen: each sabotage of one op must move its shipped digest."""

import pytest
import torch

from seedless.audit.portable_check import unpack
from seedless.portable.check.compute import (
    compare_training,
    hash_op,
    read_committed,
    train_and_hash,
)
from seedless.portable.check.networks import INPUT_SHAPE, NETWORKS
from seedless.portable.check.op_cases import OPS
from seedless.portable.context import CONTEXT
from seedless.portable.exact import elementary
from seedless.portable.exact.product import multiply
from seedless.portable.ops.registry import REGISTRY

SHIPPED = read_committed()
CPU = torch.device("cpu")


def fused_addcmul(x, a, b, value=1):
    """The last product and the sum rounded once, as a contracted kernel does."""
    return (x.double() + (a * value).double() * b.double()).float()


def reciprocal_div(a, b):
    """What a GPU does with a plain number."""
    return a * (1.0 / b)


def plain_sum(x, dim=None, keepdim=False, dtype=None):
    """Float32 values added in float32."""
    return torch.sum(x, dim, keepdim)


SABOTAGES = {
    "exp": ("exp", torch.exp),
    "erf": ("erf", torch.erf),
    "tanh": ("tanh", torch.tanh),
    "sum": ("sum.dim_IntList", plain_sum),
    "mm_long": ("mm", torch.mm),
    "addcmul": ("addcmul", fused_addcmul),
    "div7": ("div.Tensor", reciprocal_div),
    "layer_norm": ("native_layer_norm", torch.native_layer_norm),
    "conv2d": ("convolution", torch.convolution),
    "softmax": ("_softmax", torch._softmax),
    "gelu": ("gelu", torch._C._nn.gelu),
    "bicubic": ("upsample_bicubic2d", torch._C._nn.upsample_bicubic2d),
    "logsumexp": ("logsumexp", torch.logsumexp),
    "pow_tensor": ("pow.Tensor_Tensor", torch.pow),
}


@pytest.mark.parametrize("name", sorted(SABOTAGES))
def test_a_sabotaged_op_moves_its_digest(name, monkeypatch):
    assert hash_op(name, OPS[name], CPU) == SHIPPED["ops"][name]
    op, weak = SABOTAGES[name]
    monkeypatch.setitem(REGISTRY, f"aten::{op}", weak)
    assert hash_op(name, OPS[name], CPU) != SHIPPED["ops"][name]


def contracted_addmm(c, a, b, beta=1, alpha=1):
    """The bias added before the product is rounded, as a fused epilogue does."""
    return (multiply(a[None], b[None])[0] + c.double()).float()


def library_exp(x):
    """A library's float32 exponential."""
    return torch.exp(x.float()).double()


# One contracted multiply-add, one library exponential, one float32 sum: a model must feel each.
WEAK = {
    "a contracted multiply-add": (REGISTRY, "aten::addmm", contracted_addmm),
    "a library exponential": (elementary, "exp", library_exp),
    "a float32 sum": (REGISTRY, "aten::sum.dim_IntList", plain_sum),
}


@pytest.mark.parametrize("name", sorted(WEAK))
def test_a_model_feels_one_weak_spot(name, monkeypatch):
    shipped = unpack(SHIPPED["models"])["transformer"]
    sound = train_and_hash("transformer", NETWORKS["transformer"](), INPUT_SHAPE, steps=1)
    assert compare_training("transformer", sound, shipped) == []
    home, key, weak = WEAK[name]
    if home is REGISTRY:
        monkeypatch.setitem(home, key, weak)
    else:
        monkeypatch.setattr(home, key, weak)
    with CONTEXT.without_kernels():  # fused kernels have functions of their own
        found = train_and_hash("transformer", NETWORKS["transformer"](), INPUT_SHAPE, steps=2)
    assert len(compare_training("transformer", found, shipped)) == 1
    assert found.traces[1] != shipped.traces[1]


def test_the_trace_sees_what_the_weights_hide(monkeypatch):
    """A gradient's norm with a wrong last bit: too small to be clipped, it changes no weight."""
    shipped = unpack(SHIPPED["models"])["transformer"]
    sound = REGISTRY["aten::linalg_vector_norm"]

    def slip(*given, **named):
        out = sound(*given, **named)
        out.view(-1).view(torch.int32)[0] ^= 1
        return out

    monkeypatch.setitem(REGISTRY, "aten::linalg_vector_norm", slip)
    found = train_and_hash("transformer", NETWORKS["transformer"](), INPUT_SHAPE, steps=1)
    assert found.digests[0] == shipped.digests[0]
    (line,) = compare_training("transformer", found, shipped)
    assert "the same bits, but the trace" in line
