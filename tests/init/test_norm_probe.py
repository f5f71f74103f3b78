"""Norm layers of anyone's are recognized by running them; what is not one is not."""

import pytest
import torch
from torch import nn

import seedless
from seedless.init.norm_probe import find_norm_values


class RootMeanSquare(nn.Module):
    def __init__(self, shift=0.0):
        super().__init__()
        self.shift = shift
        self.strength = nn.Parameter(torch.randn(6))

    def forward(self, x):
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return scaled * (self.shift + self.strength)


class ChannelsFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.randn(6))
        self.b = nn.Parameter(torch.randn(6))

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(1, keepdim=True) + 1e-6).sqrt()
        return self.g[:, None, None] * scaled + self.b[:, None, None]


class Affine(nn.Module):
    """It multiplies and adds, but normalizes nothing."""

    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.randn(6))
        self.b = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return self.g * x + self.b


@pytest.mark.parametrize(
    ("layer", "values"),
    [
        (RootMeanSquare(), {"strength": 1.0}),
        (RootMeanSquare(shift=1.0), {"strength": 0.0}),
        (RootMeanSquare(shift=0.5), {}),
        (ChannelsFirst(), {"g": 1.0, "b": 0.0}),
        (Affine(), {}),
        (nn.Linear(6, 6), {}),
        (nn.PReLU(6), {}),
    ],
)
def test_the_neutral_values_of_a_norm(layer, values):
    before = seedless.digest(layer)
    assert find_norm_values(layer) == values
    assert seedless.digest(layer) == before


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_norm_starts_with_a_gain_of_one_whatever_it_held(shift):
    model = nn.Sequential(nn.Linear(6, 6), RootMeanSquare(shift))
    seedless.initialize(model, "dct")
    assert (model[1].strength + shift == 1).all()
