"""Basis, residual scale and head are settings of their own: every start takes all of them."""

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.init import INITIALIZATIONS, make_plan
from seedless.init.layer_weights import default_sigma
from seedless.init.starts import list_starts
from seedless.numerics.exact_sums import exact_gram

ONE_BASIS = sorted(set(INITIALIZATIONS) - {"mixed"})
SEEDED, OFFSET = list_starts("seed"), list_starts("offset")


def make_model():
    """Return a layer, a residual exit and a head."""
    return nn.ModuleDict(
        {
            "first": nn.Conv1d(4, 8, 3),
            "exit": seedless.mark(nn.Conv1d(8, 8, 3), residual_exit=True),
            "head": seedless.mark(nn.Linear(8, 5), head="etf"),
        }
    )


def fill(basis, **settings):
    """Return the parameters of the model after `initialize`, by name."""
    model = make_model()
    seedless.initialize(model, basis, **settings)
    return {name: value.detach().double() for name, value in model.named_parameters()}


@pytest.mark.parametrize("basis", ONE_BASIS)
def test_the_residual_scale_changes_residual_exits_and_nothing_else(basis):
    whole, small = (fill(basis, residual_scale=scale) for scale in (1.0, 0.01))
    for name, values in whole.items():
        expected = values * 0.01 if name.startswith("exit") else values
        torch.testing.assert_close(small[name], expected, rtol=1e-6, atol=0)
    assert small["exit.weight"].abs().max() > 0


@pytest.mark.parametrize("basis", ONE_BASIS)
def test_the_head_changes_the_head_and_nothing_else(basis):
    frame, plain = (fill(basis, heads=heads) for heads in ("etf", "basis"))
    for name, values in plain.items():
        assert torch.equal(frame[name], values) == (name != "head.weight")
    cosines = frame["head.weight"] @ frame["head.weight"].T
    expected = torch.eye(5, dtype=torch.float64) * 1.25 - 0.25
    torch.testing.assert_close(cosines, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("basis", ONE_BASIS)
def test_without_settings_a_start_has_the_recipe_it_was_published_with(basis):
    structured = INITIALIZATIONS[basis].structured
    scale, heads = (0.01, "etf") if structured else (1.0, "basis")
    written = fill(basis, residual_scale=scale, heads=heads)
    assert all(torch.equal(values, written[name]) for name, values in fill(basis).items())
    assert INITIALIZATIONS[basis].residual_scale == scale


@pytest.mark.parametrize("basis", ["orthogonal", "canonical_orthogonal", "scrambled"])
@pytest.mark.parametrize("shape", [(24, 60), (60, 24)])
def test_matrices_are_orthogonal_up_to_centring_and_have_the_structured_spread(basis, shape):
    layer = nn.Linear(shape[1], shape[0])
    plan = seedless.initialize(layer, basis)
    weight = layer.weight.detach().double().numpy()
    assert float(weight.std()) == pytest.approx(default_sigma(shape), rel=1e-6)
    assert abs(weight.mean()) < 1e-8
    inner = exact_gram(weight if shape[0] <= shape[1] else weight.T)
    cosines = inner / inner.diagonal().mean() - np.eye(len(inner))
    assert np.abs(cosines).max() < 0.1
    assert plan.measures["weight"]["orthogonality_error"] < 1e-14
    assert not layer.bias.any()


def test_filters_of_images_do_not_repeat_before_the_basis_is_used_up():
    layer = nn.Conv2d(3, 27, 3)
    for basis in ("scrambled", "orthogonal"):
        assert make_plan(layer, basis).measures["weight"]["distinct"] == 27
    depthwise = nn.Conv2d(16, 16, 3, groups=16)
    assert make_plan(depthwise, "scrambled").measures["weight"]["distinct"] == 16
    assert make_plan(depthwise, "dct").measures["weight"]["distinct"] == 9


@pytest.mark.parametrize("basis", SEEDED)
def test_a_seed_gives_another_random_start(basis):
    assert not torch.equal(fill(basis)["first.weight"], fill(basis, seed=1)["first.weight"])
    assert torch.equal(fill(basis)["first.weight"], fill(basis, seed=0)["first.weight"])


@pytest.mark.parametrize("basis", OFFSET)
def test_an_offset_gives_a_replicate_of_a_start_without_a_seed(basis):
    assert not torch.equal(fill(basis)["first.weight"], fill(basis, offset=1)["first.weight"])
    plans = [make_plan(make_model(), basis, offset=offset).digest for offset in (0, 1)]
    assert len(set(plans)) == 2


@pytest.mark.parametrize("basis", OFFSET)
def test_without_a_seed_the_key_is_name_shape_and_offset(basis):
    def draw(name, outputs):
        model = nn.ModuleDict({name: nn.Linear(6, outputs)})
        seedless.initialize(model, basis, heads="basis")
        return model[name].weight.detach()[:4].numpy().tobytes()

    assert draw("a", 6) == draw("a", 6)
    assert len({draw("a", 6), draw("b", 6), draw("a", 5)}) == 3


def test_canonical_starts_are_not_those_of_a_seed():
    """Seed 0 and offset 0 must not be one start under two names."""
    for seeded, free in (("kaiming", "canonical_kaiming"), ("orthogonal", "canonical_orthogonal")):
        assert not torch.equal(fill(seeded)["first.weight"], fill(free)["first.weight"])


@pytest.mark.parametrize("basis", sorted(INITIALIZATIONS))
def test_a_start_refuses_a_number_that_it_does_not_use(basis):
    layer = seedless.mark(nn.Linear(4, 4), stage=0)
    for setting, takers in (("seed", SEEDED), ("offset", OFFSET)):
        if basis in takers:
            seedless.initialize(layer, basis, **{setting: 3})
            continue
        with pytest.raises(
            seedless.SeedlessError, match=f"{basis} has no {setting}; .* {takers[0]}"
        ):
            seedless.initialize(layer, basis, **{setting: 3})
