"""The first use of a global generator is named by line and module."""

import contextlib
import inspect
import random
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from seedless.numerics.first_draw import find_first_draw


class Noise(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        y = x + 1
        z = self.draw(y)  # here
        return z * 2


LINE = inspect.getsourcelines(Noise.forward)[1] + 2
DRAWS = {
    "torch's CPU generator": lambda x: torch.randn_like(x),
    "numpy's np.random": lambda x: x * np.random.rand(),
    "Python's random": lambda x: x * random.uniform(0, 1),
}


@pytest.mark.parametrize("name", DRAWS)
def test_line_and_module_are_named(name):
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Noise(DRAWS[name])))
    found = find_first_draw(lambda: model(torch.ones(3, 2)), model)
    assert found.generators == (name,)
    assert found.module == "1.0"
    file, line = found.line.rsplit(":", 1)
    assert file == __file__
    assert int(line) in {LINE, inspect.getsourcelines(DRAWS[name])[1]}
    assert str(found) == f"at {found.line}, in module '1.0'"


def test_dropout_of_torch_is_named_by_the_line_that_calls_it():
    class Model(nn.Module):
        def forward(self, x):
            return F.dropout(x, 0.5)

    model = Model()
    found = find_first_draw(lambda: model(torch.ones(3)), model)
    assert found.line == f"{__file__}:{inspect.getsourcelines(Model.forward)[1] + 1}"
    assert found.module == ""


def test_a_line_of_the_standard_library_is_not_named():
    """A decorated function is called by contextlib; its caller is the line to change."""

    @contextlib.contextmanager
    def wrapped():
        yield

    draw = wrapped()(nn.Dropout(0.5))
    found = find_first_draw(lambda: draw(torch.ones(3)), nn.Identity())
    assert found.line.rsplit(":", 1)[0] == __file__


def test_the_first_of_several_is_named():
    def draw_twice():
        random.random()
        np.random.rand()

    found = find_first_draw(draw_twice, nn.Identity())
    assert found.generators == ("Python's random",)
    assert found.line.endswith(f":{inspect.getsourcelines(draw_twice)[1] + 1}")
    assert found.module is None


def test_without_a_draw_nothing_is_named():
    model = nn.Linear(2, 2)
    assert find_first_draw(lambda: model(torch.ones(1, 2)), model) is None
    assert find_first_draw(lambda: 1 / 0, model) is None
    assert sys.gettrace() is None or "coverage" in repr(sys.gettrace())
