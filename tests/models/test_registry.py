"""`build`: moves no generator, forgets no buffer, refuses bad arguments."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seedless.core.errors import ModelError, UnknownNameError
from seedless.models import MODELS, build
from seedless.models.registry import ModelEntry


def generators() -> tuple[bytes, str, Any]:
    """Return the state of every global generator."""
    numpy_state = np.random.get_state(legacy=False)
    return torch.get_rng_state().numpy().tobytes(), repr(numpy_state), random.getstate()


@pytest.mark.parametrize("name", MODELS)
def test_build_moves_no_global_generator(name: str) -> None:
    before = generators()
    build(name)
    assert generators() == before


def test_building_the_class_itself_would_move_one() -> None:
    with torch.random.fork_rng():
        before = generators()
        MODELS["conformer"].make(width=8, blocks=(1, 1, 1, 1))
        assert generators() != before


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_initialized_and_it_shows(name: str) -> None:
    model = build(name, small=True).eval()
    assert all(parameter.isnan().all() for parameter in model.parameters())
    shape = (2, 3, 8, 8) if name == "resnet18" else (2, 12, 64)
    assert model(torch.ones(shape)).isnan().all()


@pytest.mark.parametrize("name", MODELS)
def test_every_buffer_has_its_start_value(name: str) -> None:
    entry = MODELS[name]
    with torch.random.fork_rng():
        expected = dict(entry.make(**entry.small).named_buffers())
    found = dict(build(name, small=True).named_buffers())
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("name", MODELS)
def test_a_built_model_takes_weights_and_keeps_its_shape(name: str) -> None:
    entry = MODELS[name]
    with torch.random.fork_rng():
        source = entry.make(**entry.small)
    target = build(name, small=True)
    target.load_state_dict(source.state_dict())
    x = torch.ones(2, 3, 8, 8) if name == "resnet18" else torch.ones(2, 12, 64)
    assert torch.equal(source.eval()(x), target.eval()(x))


def test_a_buffer_that_would_be_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Keeper(nn.Module):
        def __init__(self, **_: int) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(3), persistent=False)

    monkeypatch.setitem(MODELS, "keeper", ModelEntry(Keeper, "leads", 12, 12, {}))
    with pytest.raises(ModelError, match="Keeper has a buffer"):
        build("keeper")


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "12", float("nan")])
@pytest.mark.parametrize("argument", ["leads", "classes"])
def test_sizes_must_be_positive_integers(argument: str, value: object) -> None:
    with pytest.raises(ModelError, match=f"expected {argument} to be an integer >= 1, got"):
        build("conformer", **{argument: value})


def test_channels_must_be_a_positive_integer() -> None:
    with pytest.raises(ModelError, match="expected channels to be an integer >= 1, got 0"):
        build("resnet18", channels=0)


def test_leads_are_for_recordings_and_channels_for_images() -> None:
    with pytest.raises(ModelError, match="'baseline' takes leads, not channels; got channels=3"):
        build("baseline", channels=3)
    with pytest.raises(ModelError, match="'resnet18' takes channels, not leads; got leads=12"):
        build("resnet18", leads=12)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'conformer'.*baseline, conformer"):
        build("conformr")


def test_defaults_are_the_published_sizes() -> None:
    assert build("conformer").head.out_features == 12
    assert build("resnet18").head.out_features == 100
    assert build("resnet18").stem[0].in_channels == 3
