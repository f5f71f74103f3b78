"""The negative control flips the bit it names, and no other."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from seedless.core.digests import digest
from seedless.core.errors import ConfigError
from seedless.train.bit_flip import flip_bit, parse_target
from seedless.train.loop import train
from tests.train.problems import Recorder, linear, make_problem

WORDS = {torch.float64: np.int64, torch.float32: np.int32, torch.float16: np.int16}


def words(model):
    """Return every parameter's bits as whole numbers."""
    return {
        name: parameter.detach().numpy().copy().view(WORDS[parameter.dtype]).reshape(-1)
        for name, parameter in model.named_parameters()
    }


def changed(before, after):
    """Return (parameter, element, bit) for every bit that is not what it was."""
    found = []
    for name, old in before.items():
        width = 8 * old.itemsize
        different = (old ^ after[name]).view(f"u{old.itemsize}")
        for element in np.flatnonzero(different):
            bits = int(different[element])
            found += [(name, int(element), bit) for bit in range(width) if bits >> bit & 1]
    return found


@pytest.mark.parametrize("dtype", WORDS)
def test_every_bit_position_flips_exactly_itself(dtype):
    model = linear().to(dtype)
    width = 8 * torch.finfo(dtype).bits // 8
    for bit in range(width):
        before = words(model)
        flip_bit(model, f"1.weight:5:{bit}")
        assert changed(before, words(model)) == [("1.weight", 5, bit)]


@given(st.integers(0, 71), st.integers(0, 31), st.floats(width=32, allow_nan=True))
def test_any_bit_of_any_element_of_any_value_flips_and_flips_back(element, bit, value):
    model = linear()
    with torch.no_grad():
        model[1].weight.fill_(value)
    before = words(model)
    flip_bit(model, f"1.weight:{element}:{bit}")
    assert changed(before, words(model)) == [("1.weight", element, bit)]
    flip_bit(model, f"1.weight:{element}:{bit}")
    assert changed(before, words(model)) == []


def test_the_sign_bit_is_the_last():
    model = linear()
    old = model[1].weight[0, 0].item()
    flip_bit(model, "1.weight:0:31")
    assert model[1].weight[0, 0].item() == -old


def test_a_name_may_hold_dots():
    model = nn.ModuleDict({"part": linear()})
    assert parse_target(model, "part.1.bias:2:0") == ("part.1.bias", 2, 0)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("1.weight", "expected control.flip_bit as PARAMETER:ELEMENT:BIT.*got '1.weight'"),
        ("1.weight:0", "PARAMETER:ELEMENT:BIT"),
        ("1.weight:-1:0", "PARAMETER:ELEMENT:BIT"),
        ("1.weight:0:first", "PARAMETER:ELEMENT:BIT"),
        ("1.wight:0:0", r"'1.wight', which the model does not have \(did you mean '1.weight'\?\)"),
        ("1.weight:72:0", "elements 0 to 71 of 32 bits, got element 72 and bit 0"),
        ("1.weight:0:32", "elements 0 to 71 of 32 bits, got element 0 and bit 32"),
    ],
)
def test_refusals(target, message):
    model = linear()
    before = digest(model)
    with pytest.raises(ConfigError, match=message):
        flip_bit(model, target)
    assert digest(model) == before


@pytest.mark.parametrize("step", [0, 7, 14])
def test_a_run_is_the_same_up_to_the_step_and_another_from_it_on(step):
    problems = [
        make_problem(),
        make_problem(control={"flip_bit": "1.weight:0:12", "at_step": step}),
    ]
    digests = []
    for problem in problems:
        seen = []

        class Digests(Recorder):
            def step(self, progress, seen=seen):
                seen.append(digest(progress.problem.model))

        train(problem, (Digests(),))
        digests.append(seen)
    clean, flipped = digests
    assert clean[:step] == flipped[:step]
    assert all(one != other for one, other in zip(clean[step:], flipped[step:], strict=True))
