"""Digests of a user's functions: what they cover, and what is refused."""

import functools
import random
import types
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

from seedless.core.errors import ConfigError
from seedless.proof.callable_claims import check_callables
from seedless.proof.callable_digest import describe_callables, digest_callable

FACTOR = 2.0


def double(value):
    return value * FACTOR


def loss(outputs, targets, weight=1.0):
    return double(outputs - targets) * weight


def digest(function):
    return digest_callable("loss", function)


def scale_by(factor):
    return lambda outputs, targets: (outputs - targets).sum() * factor


def test_the_same_function_has_the_same_digest():
    assert digest(loss) == digest(loss)
    assert digest(scale_by(1)) == digest(scale_by(1))


def test_a_global_that_a_called_function_uses_is_part_of_it(monkeypatch):
    before = digest(loss)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert digest(loss) != before


def test_a_default_is_part_of_it():
    changed = types.FunctionType(loss.__code__, globals(), "loss", (2.0,))
    assert digest(changed) != digest(loss)


@pytest.mark.parametrize("value", [2, "1", np.zeros(3), torch.ones(2), [1], {"a": 1}, None, 1j])
def test_a_closure_value_is_part_of_it(value):
    assert digest(scale_by(value)) != digest(scale_by(1))
    assert digest(scale_by(value)) == digest(scale_by(value))


def test_lambdas_of_one_line_are_told_apart():
    one, two = (lambda x: x + 1), (lambda x: x + 2)
    assert digest(one) != digest(two)
    assert digest(one) == digest(lambda x: x + 1)  # wherever it is written


def test_bound_arguments_and_settings_of_modules_are_part_of_it():
    assert digest(functools.partial(loss, weight=2)) != digest(functools.partial(loss, weight=3))
    assert digest(nn.CrossEntropyLoss()) == digest(nn.CrossEntropyLoss())
    assert digest(nn.CrossEntropyLoss()) != digest(nn.CrossEntropyLoss(ignore_index=3))
    weighted = [nn.CrossEntropyLoss(weight=torch.tensor([1.0, w])) for w in (1, 2)]
    assert digest(weighted[0]) != digest(weighted[1])


class Margin:
    def __init__(self, margin):
        self.margin = margin

    def __call__(self, outputs, targets):
        return double(outputs - targets + self.margin)


def test_an_object_of_the_users_is_its_class_and_its_values(monkeypatch):
    assert digest(Margin(1)) == digest(Margin(1))
    assert digest(Margin(1)) != digest(Margin(2))
    before = digest(Margin(1).__call__)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert digest(Margin(1).__call__) != before


def test_a_function_may_use_itself():
    def repeat(depth):
        return depth and repeat(depth - 1)

    assert digest(repeat) == digest(repeat)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (torch.dist, "built in and has no source text.*wrap it"),
        (scale_by(object()), "'factor', which <lambda> uses, is a object"),
        (scale_by(random.Random(0)), "draws random numbers"),
        (scale_by(np.random.default_rng(0)), "draws random numbers"),
        (scale_by(torch.Generator()), "draws random numbers"),
        (eval("lambda outputs, targets: outputs"), "source text cannot be found"),
        (scale_by(list(range(200_000))), "too many values"),
    ],
)
def test_what_has_no_digest_is_refused(function, words):
    with pytest.raises(ConfigError, match=words):
        digest(function)


def test_the_descriptions_of_a_receipt_are_checked():
    described = describe_callables({"loss": loss, "key": None, "collate": double})
    assert [item["role"] for item in described] == ["collate", "loss"]
    assert check_callables(described) == []
    for wrong in (
        None,
        [None],
        described[::-1],
        [*described, described[0]],
        [{**described[0], "digest": "sha256:0"}],
        [{**described[0], "name": ""}],
        [{**described[0], "role": "model"}],
        [{**described[0], "more": 1}],
    ):
        assert check_callables(wrong)


def test_a_package_may_be_installed_outside_this_environment(tmp_path, monkeypatch):
    """As by `pip install --user`. The globals of the package are not followed there either."""
    text = "import threading\nLOCK = threading.Lock()\n\n\ndef loss(out, y):\n    return LOCK\n"
    for folder, name in (("lib/site-packages", "far_package"), ("code", "own_module")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path / folder)
    installed, own = import_module("far_package").loss, import_module("own_module").loss
    assert digest_callable("loss", installed).startswith("sha256:")
    with pytest.raises(ConfigError, match="LOCK"):  # [Negative control] the same in user code
        digest_callable("loss", own)
