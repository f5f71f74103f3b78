"""One weak spot is enough to be seen: each sabotage of one op must move its committed digest."""

import json

import pytest
import torch

from seedless.numerics.portable.cases import OPS
from seedless.numerics.portable.check import hash_op
from seedless.numerics.portable.table import HANDLERS
from tests.golden.write_portable import FILE

COMMITTED = json.loads(FILE.read_text())["ops"]
CPU = torch.device("cpu")


def fused_addcmul(x, a, b, value=1):
    """The last product and the sum rounded once, as a contracted kernel does."""
    return (x.double() + (a * value).double() * b.double()).float()


def reciprocal_div(a, b, rounding_mode=None):
    """What a GPU does with a plain number."""
    return a * (1.0 / b)


SABOTAGES = {
    "exp": ("exp", torch.exp),
    "erf": ("erf", torch.erf),
    "tanh": ("tanh", torch.tanh),
    "sum": ("sum", lambda x, dim=None, keepdim=False, dtype=None: torch.sum(x, dim, keepdim)),
    "mm_long": ("mm", torch.mm),
    "addcmul": ("addcmul", fused_addcmul),
    "div7": ("div", reciprocal_div),
    "layer_norm": ("native_layer_norm", torch.native_layer_norm),
    "conv2d": ("convolution", torch.convolution),
    "softmax": ("_softmax", torch._softmax),
    "gelu": ("gelu", torch._C._nn.gelu),
}


@pytest.mark.parametrize("name", sorted(SABOTAGES))
def test_a_sabotaged_op_moves_its_digest(name, monkeypatch):
    assert hash_op(name, OPS[name], CPU) == COMMITTED[name]
    op, weak = SABOTAGES[name]
    monkeypatch.setitem(HANDLERS, op, weak)
    assert hash_op(name, OPS[name], CPU) != COMMITTED[name]
