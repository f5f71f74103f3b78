"""Any value as plain values: nothing a script holds can stop it from being recorded."""

import argparse
import dataclasses
import enum
import json
import logging
import types
from collections import UserDict, namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from seedless.core.digests import canonical_json
from seedless.core.plain_values import MAX_TEXT, describe_value, digest_structure


@dataclasses.dataclass
class Options:
    rate: float
    layers: tuple[int, ...] = (1, 2)


class Shade(enum.Enum):
    DARK = 1


class Raising:
    def __repr__(self):
        raise RuntimeError("no text")


class Hidden(dict):
    def items(self):
        raise RuntimeError("no items")


Pair = namedtuple("Pair", "left right")

KNOWN = {
    "plain": ({"a": [1, 2.5, True, None, "x"]}, {"a": [1, 2.5, True, None, "x"]}),
    "infinity": ([float("inf"), float("-inf"), float("nan")], ["inf", "-inf", "nan"]),
    "path": (Path("data") / "x", "data/x"),
    "dtype": (torch.float16, "torch.float16"),
    "device": (torch.device("cpu"), "device(type='cpu')"),
    "namespace": (argparse.Namespace(rate=0.5, f=Path("a")), {"rate": 0.5, "f": "a"}),
    "simple namespace": (types.SimpleNamespace(a=1), {"a": 1}),
    "dataclass": (Options(0.1), {"rate": 0.1, "layers": [1, 2]}),
    "named tuple": (Pair(1, 2), {"left": 1, "right": 2}),
    "enum": (Shade.DARK, "Shade.DARK"),
    "set": ({"b", "a", "c"}, ["a", "b", "c"]),
    "numpy scalars": ([np.float32(0.5), np.int64(3), np.bool_(True)], [0.5, 3, True]),
    "class and function": ([Options, len], [f"{__name__}.Options", "builtins.len"]),
    "keys": ({1: "a", "1": "b", None: 0}, {"1": "a", "1 (str)": "b", "None": 0}),
    "large number": (2**70, hex(2**70)),
    "complex": (1j, "1j"),
    "half a character": ("\ud800", "\\ud800"),
    "user's dict": (UserDict(a=1), {"a": 1}),
    "object": (logging.getLogger("x"), "<Logger x (WARNING)>"),
    "default text": (object(), "<object object>"),
    "raising": (Raising(), f"<{__name__}.Raising>"),
    "raising dict": (Hidden(), "{}"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_a_value_is_described(case):
    value, described = KNOWN[case]
    assert describe_value(value) == described
    canonical_json(describe_value(value))


def test_a_value_that_holds_itself_ends():
    value = {"a": []}
    value["a"].append(value)
    assert describe_value(value) == {"a": ["<a value that holds itself>"]}


def test_what_is_deep_or_long_is_cut():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    assert len(json.dumps(describe_value(deep))) < 1_000
    assert describe_value("x" * (MAX_TEXT + 1)).startswith("sha256:")
    wide = describe_value([list(range(1_000)) for _ in range(300)])
    assert len(json.dumps(wide)) < 2_000_000


def test_a_tensor_is_its_digest():
    found = describe_value({"weights": torch.ones(2, 3)})["weights"]
    assert (found["dtype"], found["shape"]) == ("float32", [2, 3])
    assert found == describe_value(np.ones((2, 3), dtype="f4"))
    assert found != describe_value(torch.ones(3, 2))
    assert found != describe_value(torch.ones(2, 3, dtype=torch.float64))


class Batch:
    """A batch of a class of its own, as graph libraries have them."""

    def __init__(self, x):
        self.x = x
        self.sizes = [3, 4]


def make_batches():
    x = torch.arange(6.0).view(2, 3)
    packed = nn.utils.rnn.pack_padded_sequence(x[..., None], torch.tensor([3, 2]), batch_first=True)
    return {
        "tensor": x,
        "list": [x, torch.tensor([0, 1])],
        "dict": {"x": x, "name": ["a", "b"]},
        "array": x.numpy(),
        "text array": np.array(["a", "b"]),
        "numbers": [1, 2.0, None],
        "object": Batch(x),
        "packed": packed,
        "sparse": x.to_sparse(),
        "nested": torch.nested.nested_tensor([x[0], x[1, :2]], layout=torch.jagged),
        "bfloat16": x.bfloat16(),
    }


def change(value):
    """The same kind of tensor with its last number changed."""
    if value.is_nested:
        parts = [part.clone() for part in value.unbind()]
        parts[-1][-1] += 1e-5
        return torch.nested.nested_tensor(parts, layout=torch.jagged)
    dense = value.to_dense() if value.is_sparse else value.clone()
    dense.view(-1)[-1] += 1e-5 if dense.dtype == torch.float32 else 1
    return dense.to_sparse() if value.is_sparse else dense


@pytest.mark.parametrize("case", make_batches())
def test_a_batch_of_any_structure_has_a_digest(case):
    one, again = make_batches()[case], make_batches()[case]
    assert digest_structure(one) == digest_structure(again)
    others = [digest_structure(value) for name, value in make_batches().items() if name != case]
    assert case in ("tensor", "array", "sparse") or digest_structure(one) not in others


@pytest.mark.parametrize("case", ["tensor", "sparse", "nested", "bfloat16"])
def test_one_changed_number_changes_the_digest(case):
    one = make_batches()[case]
    assert digest_structure(one) != digest_structure(change(one))
    assert digest_structure(Batch(one)) != digest_structure(Batch(change(one)))
    assert digest_structure({"a": [one]}) != digest_structure({"a": [change(one)]})
