"""A model that was trained shows it in its norm layers."""

import pytest
import torch
from torch import nn

from seedless.init.trained_signs import find_trained_layers, warn_of_discarded_weights
from seedless.models.registry import build


def make_model():
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.LayerNorm(6), nn.Linear(6, 2))


def test_a_new_model_shows_no_sign():
    model = make_model()
    nn.init.zeros_(model[1].weight)  # a branch that its author switched off
    assert find_trained_layers(model) == []


def test_a_built_model_without_a_start_shows_no_sign():
    assert find_trained_layers(build("conformer", small=True)) == []


@torch.no_grad()
def pass_forward(model):
    model(torch.ones(2, 2, 8))


@torch.no_grad()
def change_gain(model):
    model[2].weight[0] = 1.5


@torch.no_grad()
def change_bias(model):
    model[2].bias[0] = 1e-3


@pytest.mark.parametrize(
    ("train", "layer"), [(pass_forward, "1"), (change_gain, "2"), (change_bias, "2")]
)
def test_a_trained_one_does(train, layer):
    model = make_model()
    train(model)
    assert find_trained_layers(model) == [layer]
    said = []
    warn_of_discarded_weights(model, "dct", said.append)
    assert f"seen in {layer}" in said[0]
    assert 'init.basis to "given"' in said[0]


def test_nothing_is_said_where_nothing_is_discarded():
    model = make_model()
    pass_forward(model)
    for given, basis in ((model, "given"), (make_model(), "dct"), (make_model, "dct")):
        warn_of_discarded_weights(given, basis, pytest.fail)


def make_lazy():
    return nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d())


def make_without_values():
    with torch.device("meta"):
        return make_model()


@pytest.mark.parametrize("make", [make_lazy, make_without_values])
def test_a_model_without_values_shows_no_sign(make):
    """`fit` refuses it afterwards, in words; torch's error about its tensors came before."""
    assert find_trained_layers(make()) == []
