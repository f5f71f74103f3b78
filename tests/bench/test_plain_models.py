"""The plain model computes the same function as ours, with torch's own layers alone."""

import pytest
import torch
from torch import nn

import seedless
from seedless.bench.plain_models import make_plain
from seedless.core.errors import ModelError
from seedless.models import MODELS
from seedless.train.loss import Loss, binary_cross_entropy

SHAPES = dict.fromkeys(MODELS, (6, 12, 250)) | {"resnet18": (6, 3, 16, 16)}


def make_pair(name, *, deterministic=False):
    """Return our small model and the plain one in float64, with weights that use every path."""
    ours = seedless.build(name, small=True, classes=12)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw) * 0.2)
    for module in ours.modules():
        if isinstance(module, seedless.Dropout):
            module.p = 0.0  # the two draw their masks differently
    plain = make_plain(ours, deterministic=deterministic)
    return ours.double().train(), plain.double().train()


def lose(model, x):
    """Return the loss a benchmark has: BCE with class weights, and the spare features' penalty."""
    labels = (torch.arange(len(x) * 12).view(len(x), 12) % 3 == 0).double()
    weights = torch.linspace(1, 2, 12, dtype=torch.float64)
    loss = Loss("bce", lambda z, y: binary_cross_entropy(z.double(), y, weights), None, 0.0)
    spare = getattr(model, "spare", 0)
    penalty = model.features(x)[:, -spare:].square().mean() if spare else 0.0
    return loss(model, x, labels).mean() + penalty


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_logits_gradients_and_running_statistics_agree(name, deterministic):
    ours, plain = make_pair(name, deterministic=deterministic)
    x = torch.randn(SHAPES[name], dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    with seedless.dropout_keys(samples=torch.arange(len(x)), epoch=0):
        torch.testing.assert_close(plain(x), ours(x), rtol=1e-9, atol=1e-9)
        for model in (ours, plain):
            lose(model, x).backward()
    gradients = {key: parameter.grad for key, parameter in plain.named_parameters()}
    for key, parameter in ours.named_parameters():
        # The loss takes logits as float32, so gradients agree to what that leaves.
        torch.testing.assert_close(gradients[key], parameter.grad, rtol=1e-4, atol=1e-7, msg=key)
        assert parameter.grad.abs().max() > 0, key
    for key, buffer in ours.named_buffers():
        torch.testing.assert_close(dict(plain.named_buffers())[key], buffer, msg=key)


@pytest.mark.parametrize("name", MODELS)
def test_a_state_dict_fits_both_and_the_plain_model_holds_copies(name):
    ours = seedless.build(name, small=True)
    seedless.initialize(ours)
    for parameter in ours.parameters():  # laid out otherwise, as a step of ours may want it
        parameter.data = parameter.data.transpose(0, -1).contiguous().transpose(0, -1)
    before = seedless.digest(ours)
    plain = make_plain(ours)
    assert seedless.digest(plain) == before
    assert list(plain.state_dict()) == list(ours.state_dict())
    assert all(parameter.is_contiguous() for parameter in plain.parameters())
    plain.load_state_dict(ours.state_dict())
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.add_(1)
    assert seedless.digest(ours) == before


@pytest.mark.parametrize("name", ["conformer", "baseline", "xresnet1d101"])
def test_no_layer_of_ours_is_left(name):
    plain = make_plain(seedless.build(name, small=True))
    kinds = {type(module) for module in plain.modules()}
    assert not [kind for kind in kinds if kind.__module__.startswith("seedless.models")]
    assert not [kind for kind in kinds if kind.__module__.startswith("seedless.numerics")]
    assert nn.Conv1d in kinds


def test_dropout_keeps_its_rates():
    plain = make_plain(seedless.build("baseline", small=True))
    assert [m.p for m in plain.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.25]


def test_another_model_is_refused():
    with pytest.raises(ModelError, match=r"Linear has no plain form.*Conformer"):
        make_plain(nn.Linear(2, 2))
