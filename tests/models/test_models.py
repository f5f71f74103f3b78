"""The four models: their published size, what they accept, and what they declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from seedless.core.errors import ModelError
from seedless.core.marks import read_marks, read_stages
from seedless.models import MODELS, build
from seedless.models.layers import BatchNorm
from seedless.numerics.active_keys import dropout_keys

ECG = ["conformer", "baseline", "xresnet1d101"]
SIZES = {
    "conformer": 1_827_634,
    "baseline": 1_653_772,
    "xresnet1d101": 1_873_164,
    "resnet18": 11_220_132,
}
SMALL_SIZES = {"conformer": 26_322, "baseline": 11_980, "xresnet1d101": 24_332, "resnet18": 83_852}
# 30 bottlenecks and 3 conformer blocks; 3 + 1 + 4 + 1 + 3; 3 + 4 + 23 + 3; 4 stages of 2.
EXITS = {"conformer": 33, "baseline": 12, "xresnet1d101": 33, "resnet18": 8}


@pytest.fixture(autouse=True)
def _deterministic() -> Iterator[None]:
    torch.set_deterministic_debug_mode("error")
    yield
    torch.set_deterministic_debug_mode("default")


def fill(model: nn.Module) -> nn.Module:
    """Give each parameter small values from its own index, so that no generator is needed."""
    with torch.no_grad():
        for parameter in model.parameters():
            index = torch.arange(parameter.numel(), dtype=torch.float64)
            values = torch.sin(index * index + 1) / max(1, parameter[0].numel()) ** 0.5
            parameter.copy_(values.view(parameter.shape))
    return model


def batch(name: str, inputs: int | None = None, length: int = 100) -> Tensor:
    inputs = inputs or MODELS[name].inputs
    shape = (3, inputs, 13, 12) if name == "resnet18" else (3, inputs, length)
    return torch.linspace(-30, 30, torch.Size(shape).numel()).sin().view(shape)


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    assert count(build(name)) == SIZES[name]
    assert count(build(name, small=True)) == SMALL_SIZES[name]


@pytest.mark.parametrize("name", ECG)
@pytest.mark.parametrize(("leads", "length", "classes"), [(12, 1000, 12), (6, 999, 5), (1, 64, 1)])
def test_ecg_models_take_any_leads_length_and_classes(
    name: str, leads: int, length: int, classes: int
) -> None:
    model = fill(build(name, leads=leads, classes=classes, small=True)).eval()
    logits = model(batch(name, leads, length))
    assert logits.shape == (3, classes)
    assert logits.isfinite().all()


@pytest.mark.parametrize("length", [1, 2, 3, 5, 17, 63, 65, 127])
@pytest.mark.parametrize("name", ECG)
def test_odd_and_very_short_lengths_work(name: str, length: int) -> None:
    model = fill(build(name, small=True)).eval()
    assert model(batch(name, length=length)).isfinite().all()


@pytest.mark.parametrize(("size", "channels"), [((28, 28), 1), ((32, 32), 3), ((7, 9), 2)])
def test_resnet18_takes_any_image(size: tuple[int, int], channels: int) -> None:
    model = fill(build("resnet18", channels=channels, classes=7, small=True)).eval()
    assert model(torch.ones(2, channels, *size)).shape == (2, 7)


@pytest.mark.parametrize("name", MODELS)
def test_the_full_model_runs(name: str) -> None:
    model = fill(build(name)).eval()
    with torch.no_grad():
        logits = model(batch(name)[:1])
    assert logits.shape == (1, MODELS[name].classes)


@pytest.mark.parametrize("name", MODELS)
def test_features_are_what_the_head_receives(name: str) -> None:
    model = fill(build(name, classes=5, small=True)).eval()
    features = model.features(batch(name))
    assert features.shape == (3, model.head.in_features)
    assert torch.equal(model.head(features), model(batch(name)))


def test_the_conformer_has_two_spare_features() -> None:
    model = fill(build("conformer", classes=5, small=True))
    assert model.features(batch("conformer")).shape == (3, 7)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_has_a_stage_and_every_stage_occurs(name: str, small: bool) -> None:
    model = build(name, small=small)
    stages = read_stages(model)
    found = {stages[parameter.rpartition(".")[0]] for parameter, _ in model.named_parameters()}
    assert found == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("name", "module", "stage"),
    [
        ("conformer", "stem.0", 0),
        ("conformer", "stages.0.2.widen", 0),
        ("conformer", "stages.1.0.narrow", 1),
        ("conformer", "stages.2.22.norm", 2),
        ("conformer", "transition.0", 3),
        ("conformer", "encoder.0.attention.qkv", 3),
        ("conformer", "projection", 3),
        ("baseline", "stem.0", 0),
        ("baseline", "stages.1.0.convolve", 1),
        ("baseline", "stages.2.0.convolve", 2),
        ("baseline", "neck.2", 3),
        ("xresnet1d101", "stem.0", 0),
        ("xresnet1d101", "stages.3.0.branch.0", 3),
        ("resnet18", "stem.0", 0),
        ("resnet18", "stages.2.0.skip.0", 2),
        *[(name, "head", 3) for name in MODELS],
    ],
)
def test_stages_are_where_the_method_puts_them(name: str, module: str, stage: int) -> None:
    assert read_stages(build(name))[module] == stage


@pytest.mark.parametrize("name", MODELS)
def test_residual_exits_are_convolutions_and_all_declared(name: str) -> None:
    exits = [m for m in build(name).modules() if read_marks(m).residual_exit]
    assert len(exits) == EXITS[name]
    assert all(isinstance(module, nn.Conv1d | nn.Conv2d) for module in exits)


@pytest.mark.parametrize("name", MODELS)
def test_heads_and_silent_norms_are_declared(name: str) -> None:
    model = build(name)
    marks = [read_marks(module) for module in model.modules()]
    heads = Counter(mark.head for mark in marks if mark.head)
    assert heads == {"etf" if name == "conformer" else "basis": 1}
    assert read_marks(model.head).head is not None
    silent = [module for module in model.modules() if read_marks(module).zero_gain]
    assert len(silent) == (33 if name == "xresnet1d101" else 0)
    assert all(isinstance(module, BatchNorm) for module in silent)


def train_once(name: str) -> list[Tensor]:
    """Return every gradient and buffer after one training pass, and the logits."""
    model = fill(build(name, small=True)).train()
    with dropout_keys(samples=torch.arange(3), epoch=0):
        logits = model(batch(name))
    logits.square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    return [logits.detach(), *[p.grad for p in model.parameters()], *model.buffers()]


@pytest.mark.parametrize("name", MODELS)
def test_a_training_pass_is_finite_and_repeats_to_the_bit(name: str) -> None:
    first, second = train_once(name), train_once(name)
    assert all(tensor.isfinite().all() for tensor in first)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_the_wrong_input_is_refused(name: str) -> None:
    model = fill(build(name, small=True)).eval()
    entry = MODELS[name]
    with pytest.raises(ModelError, match=f"built for {entry.inputs} {entry.input_name}"):
        model(batch(name, inputs=5))
    with pytest.raises(ModelError, match=rf"expected .* shape \(batch, {entry.inputs}"):
        model(batch(name)[0])
