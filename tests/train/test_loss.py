"""Losses against float64 formulas in numpy and against torch's own functions."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from seedless.core.config import LossConfig
from seedless.core.errors import ConfigError, UnknownNameError
from seedless.models import MODELS, build
from seedless.train.loss import (
    CLASS_WEIGHTS,
    SPARE_PENALTY,
    Loss,
    binary_cross_entropy,
    cross_entropy,
    make_loss,
)
from tests.train.problems import linear

CPU = torch.device("cpu")
B, K = 7, 4


def logits_and_labels(dtype=torch.float32):
    index = torch.arange(B * K, dtype=torch.float64).view(B, K)
    logits = (8 * torch.sin(index * 1.7 + 1)).to(dtype)
    return logits, (torch.cos(index * 2.3) > 0).to(dtype)


def class_numbers():
    return torch.arange(B) * 3 % K


def make(labels, task="multi-label", model=None, **settings):
    model = linear() if model is None else model
    return make_loss(LossConfig(**settings), labels, task, model, CPU)


def reference(logits, labels, weights):
    """-w y log s(z) - (1 - y) log(1 - s(z)), mean over the classes, in float64."""
    z, y = logits.double().numpy(), labels.double().numpy()
    positive, negative = np.logaddexp(0, -z), np.logaddexp(0, z)
    return (weights * y * positive + (1 - y) * negative).mean(axis=1)


def test_sqrt_weights_follow_the_formula():
    labels = np.zeros((100, 4), np.uint8)
    for k, count in enumerate((100, 25, 1, 0)):
        labels[:count, k] = 1
    weights = CLASS_WEIGHTS["sqrt"](labels)
    np.testing.assert_array_equal(weights, [1.0, 2.0, 10.0, 1.0])  # 1 where no one is positive
    np.testing.assert_array_equal(CLASS_WEIGHTS["none"](labels), np.ones(4))


def test_sqrt_weights_do_not_overflow_the_labels_type():
    labels = np.ones((70_000, 1), np.uint8)  # a sum in uint8 or uint16 would wrap around
    np.testing.assert_array_equal(CLASS_WEIGHTS["sqrt"](labels), [1.0])


@pytest.mark.parametrize("weighting", ["none", "sqrt"])
def test_bce_is_the_formula_and_torchs_own(weighting):
    logits, labels = logits_and_labels()
    known = np.zeros((90, K), np.uint8)
    for k in range(K):
        known[: 10 * k + 1, k] = 1
    loss = make(known, class_weights=weighting)
    found = loss.per_sample(logits, labels)
    weights = np.sqrt(90 / (10 * np.arange(K) + 1)) if weighting == "sqrt" else np.ones(K)
    assert found.shape == (B,)
    np.testing.assert_allclose(found, reference(logits, labels, weights), rtol=2e-6, atol=1e-6)
    whole = F.binary_cross_entropy_with_logits(
        logits, labels, pos_weight=torch.from_numpy(weights).float()
    )
    torch.testing.assert_close(found.mean(), whole)


def test_negative_control_the_weights_matter():
    logits, labels = logits_and_labels()
    found = binary_cross_entropy(logits, labels, torch.full((K,), 3.0))
    assert not np.allclose(found, reference(logits, labels, np.ones(K)))


def test_cross_entropy_is_torchs():
    logits, _ = logits_and_labels()
    classes = class_numbers()
    found = cross_entropy(logits, F.one_hot(classes, K).float())
    torch.testing.assert_close(found, F.cross_entropy(logits, classes, reduction="none"))


def test_class_weights_multiply_the_cross_entropy_of_their_class():
    logits, _ = logits_and_labels()
    classes = class_numbers()
    known = np.eye(K, dtype=np.uint8)[[0] * 64 + [1] * 16 + [2] * 4 + [3] * 16]
    loss = make(known, "multi-class", class_weights="sqrt")
    found = loss.per_sample(logits, F.one_hot(classes, K).float())
    weights = torch.tensor([1.25, 2.5, 5.0, 2.5])  # sqrt(100 / 64), and so on
    expected = F.cross_entropy(logits, classes, weight=weights, reduction="none")
    torch.testing.assert_close(found, expected)
    # Negative control: without weights it is another loss.
    plain = make(known, "multi-class").per_sample(logits, F.one_hot(classes, K).float())
    assert not torch.allclose(found, plain)


def test_losses_stay_finite_at_extreme_logits():
    logits = torch.tensor([[1e30, -1e30], [-1e30, 1e30]])
    labels = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    for found in (
        binary_cross_entropy(logits, labels, torch.ones(2)),
        cross_entropy(logits, labels),
    ):
        assert found[0] == 0
        assert torch.isfinite(found).all()


@pytest.mark.parametrize("name", ["bce", "cross_entropy"])
@pytest.mark.parametrize("clamp", [None, 3.0])
def test_gradients_are_those_of_finite_differences(name, clamp):
    logits, labels = logits_and_labels(torch.float64)
    if name == "cross_entropy":
        labels = F.one_hot(class_numbers(), K).double()
        per_sample = cross_entropy
    else:
        weights = torch.linspace(1, 4, K, dtype=torch.float64)

        def per_sample(z, y):
            return binary_cross_entropy(z, y, weights)

    loss = Loss(name, per_sample, clamp, 0.0)
    assert torch.autograd.gradcheck(
        lambda z: loss.per_sample(loss.clamp_logits(z), labels), logits.requires_grad_()
    )


def test_clamp_bounds_logits_in_the_loss_and_in_the_probabilities():
    logits, labels = logits_and_labels()
    loss = make(labels.numpy().astype(np.uint8), clamp=2.0)
    assert (logits.abs() > 2).any()
    clamped = loss(lambda x: x, logits, labels)
    np.testing.assert_allclose(
        clamped, reference(logits.clamp(-2, 2), labels, np.ones(K)), rtol=2e-6
    )
    probabilities = loss.probabilities(logits)
    edge = 1 / (1 + np.exp(-2.0))
    assert probabilities.max() == pytest.approx(edge, abs=1e-15)
    assert probabilities.min() == pytest.approx(1 - edge, abs=1e-15)


def test_probabilities_are_float64_sigmoids_or_softmaxes():
    logits, labels = logits_and_labels()
    bce = make(labels.numpy().astype(np.uint8)).probabilities(logits)
    assert bce.dtype == torch.float64
    np.testing.assert_allclose(bce, 1 / (1 + np.exp(-logits.double().numpy())), rtol=1e-14)
    hot = F.one_hot(class_numbers(), K).numpy().astype(np.uint8)
    softmax = make(hot, task="multi-class").probabilities(logits)
    powers = np.exp(logits.double().numpy())
    np.testing.assert_allclose(softmax, powers / powers.sum(axis=1, keepdims=True), rtol=1e-13)
    assert softmax.dtype == torch.float64


@pytest.mark.parametrize(
    ("task", "asked", "found"),
    [
        ("multi-label", None, "bce"),
        ("multi-class", None, "cross_entropy"),
        ("multi-class", "bce", "bce"),
    ],
)
def test_labels_choose_the_loss_unless_it_is_named(task, asked, found):
    assert make(np.eye(K, dtype=np.uint8), task=task, name=asked).name == found


@pytest.fixture(scope="module")
def conformer():
    model = build("conformer", leads=2, classes=K, small=True)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            index = torch.arange(parameter.numel(), dtype=torch.float64) + number
            parameter.copy_((torch.sin(index * index) / 8).view(parameter.shape))
    return model


def test_the_spare_penalty_is_the_mean_square_of_the_conformers_last_two_features(conformer):
    samples = torch.sin(torch.arange(3 * 2 * 64.0)).view(3, 2, 64)
    labels = torch.eye(K)[:3]
    hot = labels.numpy().astype(np.uint8)
    plain, default, asked = (
        make(hot, model=conformer, spare_penalty=penalty)(conformer, samples, labels)
        for penalty in (0.0, None, 7.0)
    )
    features = conformer.features(samples).double()
    assert features.shape == (3, K + 2)
    spare = features[:, K:].square().mean(dim=1).detach().numpy()
    assert (spare > 1e-4).all()
    plain, default, asked = (value.detach().double().numpy() for value in (plain, default, asked))
    np.testing.assert_allclose(default - plain, SPARE_PENALTY * spare, atol=3e-7)
    np.testing.assert_allclose(asked - plain, 7 * spare, rtol=1e-5)
    bce = reference(conformer(samples).detach(), labels, np.ones(K))
    np.testing.assert_allclose(plain, bce, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "conformer"])
def test_models_without_spare_features_have_no_penalty_and_refuse_one(name):
    model = build(name, classes=K, small=True)
    hot = np.eye(K, dtype=np.uint8)
    assert make(hot, model=model).spare_penalty == 0.0
    assert make(hot, model=model, spare_penalty=0.0).spare_penalty == 0.0
    with pytest.raises(ConfigError, match=r"spare_penalty.*leave it out"):
        make(hot, model=model, spare_penalty=0.1)


@pytest.mark.parametrize(
    ("settings", "task", "message"),
    [
        ({"name": "cross_entropy"}, "multi-label", "exactly one class for each sample.*use bce"),
    ],
)
def test_contradictions_are_refused(settings, task, message):
    with pytest.raises(ConfigError, match=message):
        make(np.eye(K, dtype=np.uint8), task=task, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "mse"}, "unknown loss 'mse'; known: bce, cross_entropy"),
        ({"class_weights": "root"}, "unknown class weighting 'root'.*known: none, sqrt"),
    ],
)
def test_unknown_names_list_the_known_ones(settings, message):
    with pytest.raises(UnknownNameError, match=message):
        make(np.eye(K, dtype=np.uint8), **settings)
