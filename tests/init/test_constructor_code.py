"""How a module's code sets a parameter's first values."""

import pytest
import torch
from torch import nn

from seedless.init.constructor_code import is_set_to_a_constant, is_set_to_a_table


class Made(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.ones = nn.Parameter(0.1 * torch.ones(size))
        self.number = nn.Parameter(torch.tensor(0.5))
        values = torch.zeros(size)
        self.by_variable = nn.Parameter(values)
        self.unwritten = nn.Parameter(torch.empty(size))
        self.random = nn.Parameter(torch.randn(size))
        self.random_later = nn.Parameter(torch.zeros(size))
        self.constant_later = nn.Parameter(torch.empty(size))
        self.filled_later = nn.Parameter(torch.empty(size))
        self.register_parameter("registered", nn.Parameter(torch.full((size,), 2.0)))
        steps = torch.arange(1, size + 1)
        self.range = nn.Parameter(torch.log(steps.float()))
        self.range_later = nn.Parameter(torch.empty(size))
        self.reset(steps)

    def reset(self, steps):
        nn.init.trunc_normal_(self.random_later, std=0.02)
        nn.init.constant_(self.constant_later, 3.0)
        self.filled_later.data.fill_(3.0)
        with torch.no_grad():
            self.range_later.copy_(torch.arange(len(steps)) / 2)


CONSTANT = ("ones", "number", "by_variable", "constant_later", "filled_later", "registered")
TABLES = ("range", "range_later")


@pytest.mark.parametrize("name", [name for name, _ in Made(3).named_parameters()])
def test_how_it_is_set(name):
    assert is_set_to_a_constant(Made, name) == (name in CONSTANT)
    assert is_set_to_a_table(Made, name) == (name in TABLES)
