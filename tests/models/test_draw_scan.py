"""The scan of a module's source finds the lines that draw, and says where it cannot know."""

import inspect
import random

import torch
import torch.nn.functional as F
from torch import nn

from seedless.models.draw_scan import scan_module


def add_noise(x):
    return x + torch.randperm(x.shape[-1])


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = self.dropout(F.dropout(x, 0.5))
        return self.skip(add_noise(x).bernoulli_(0.5))

    def skip(self, x):
        return x if random.random() < 0.5 else torch.rand(3, generator=torch.Generator())

    def never_called(self):
        return torch.randn(3)


def test_lines_of_forward_methods_and_functions():
    found = scan_module(Drawing())
    assert {draw.function for draw in found.intercepted} == {"F.dropout", ".bernoulli_"}
    assert {draw.function for draw in found.remaining} == {"torch.randperm", "random.random"}
    lines = {draw.function: (draw.file, draw.line) for draw in found.remaining}
    assert lines["torch.randperm"] == (__file__, inspect.getsourcelines(add_noise)[1] + 1)
    assert str(found.intercepted[0]).startswith(f"{found.intercepted[0].function} at {__file__}:")
    assert not found.unclear


class Table(nn.Module):
    def forward(self, x):
        return {"a": F.relu}["a"](x)


class Variable(nn.Module):
    def forward(self, x):
        function = F.dropout
        return function(x)


class Attribute(nn.Module):
    function = None

    def forward(self, x):
        return self.function(x)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, x):
        for _ in range(len(self.blocks)):
            x = F.relu(torch.cat([x, x]).sum(0))
        return self.blocks.get_submodule("0")(x) if self.training else self.blocks.extra_repr()


def test_calls_of_unknown_functions_are_unclear():
    assert all(scan_module(kind()).unclear for kind in (Table, Variable, Attribute))
    assert not scan_module(Plain()).unclear
