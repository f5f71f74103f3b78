"""The README of the package: its example works, its layers are those that are linted."""

import re
import textwrap
import tomllib
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch

import seedless.portable
from seedless.core.errors import NumericsError
from seedless.portable.mode import portable
from seedless.portable.ops import registry
from seedless.portable.ops.registry import REGISTRY, REPLACED, RULES, name_op
from tests.conftest import ROOT

README = Path(seedless.portable.mode.__file__).with_name("README.md")
TEXT = README.read_text()
X = torch.tensor([-1e30, -3.0, -1e-8, -0.0, 0.0, 1e-20, 1e-8, 0.5, 1.0, 7.0, 1e30])


def read_example():
    code = re.search(r"<!-- example -->\s*```python\n(.*?)```", TEXT, re.DOTALL).group(1)
    names = {}
    exec(textwrap.dedent(code), names)
    return names["IMPLEMENTATIONS"]


def test_the_op_that_the_example_adds_is_refused_without_it():
    with portable(), pytest.raises(NumericsError, match=r"aten\.asinh is not portable, at .*\.py"):
        torch.asinh(X)


def test_the_example_adds_an_op_and_its_gradient(monkeypatch):
    for overload, implementation in read_example().items():
        monkeypatch.setitem(REGISTRY, overload, implementation)
        monkeypatch.setattr(registry, "REPLACED", REPLACED | {name_op(overload)})
    x = X.clone().requires_grad_()
    with portable():
        y = torch.asinh(x)
        y.sum().backward()
        changed = X.clone().asinh_()
    RULES.clear()
    expected = [float(mpmath.asinh(value)) for value in X.tolist()]
    assert y.tolist() == np.float32(expected).tolist()
    assert torch.equal(changed, y)
    assert torch.allclose(x.grad, 1 / torch.sqrt(X.double() ** 2 + 1).float(), rtol=1e-6)


def test_the_layers_are_those_that_are_linted():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        contract["layers"]
        for contract in contracts["contracts"]
        if contract.get("containers") == ["seedless.portable"]
    )
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    documented = [set(re.findall(r"`(\w+)[./]", row)) for row in rows]
    assert documented == [set(layer.split(" | ")) for layer in layers]


def test_links_lead_somewhere():
    for link in re.findall(r"\]\((\S+?)\)", TEXT):
        assert (README.parent / link).exists(), link
