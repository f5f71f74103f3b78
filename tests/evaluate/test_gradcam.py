"""Grad-CAM against closed forms, by hand and by another implementation; and it leaves no trace."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.core.errors import DataError, ModelError
from seedless.evaluate.attribution import upsample
from seedless.evaluate.gradcam import explain_classes
from seedless.numerics.generator_guard import GeneratorGuard
from seedless.train.bit_flip import flip_bit
from tests.evaluate.models import MODELS, make_model, make_samples


class Linear(nn.Module):
    """z = V pool(W x): by hand, w = V_k / T and the map is max(0, w . W x_t)."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv1d(2, 3, 1, bias=False)
        self.head = nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            self.mix.weight.copy_(torch.tensor([[1.0, 2], [0, -1], [3, 0]])[:, :, None])
            self.head.weight.copy_(torch.tensor([[1.0, 0, -1], [0, 4, 0.5]]))

    def forward(self, x):
        return self.head(self.mix(x).mean(2))


def test_the_closed_form_of_a_linear_model():
    x = np.array([[[1, 2, 0, -1], [0.5, -1, 4, 0]]], dtype=np.float32)
    mixed = np.array([[1, 2], [0, -1], [3, 0]]) @ x[0]
    for k, weights in enumerate(([1, 0, -1], [0, 4, 0.5])):
        raw = np.maximum(np.array(weights) @ mixed / 4, 0)
        found = explain_classes(Linear(), x, k, layer="mix")
        np.testing.assert_allclose(found.maps[0], raw / raw.max(), rtol=1e-6)
        assert found.classes == (str(k),)
        assert (found.ids, found.layer, found.method) == (("0",), "mix", "gradcam")


def test_a_map_without_evidence_stays_zero():
    x = np.zeros((1, 2, 4), dtype=np.float32)
    x[:, 0] = 1  # mixed = (1, 0, 3), and class 0 weighs them (1, 0, -1)
    found = explain_classes(Linear(), x, 0, layer="mix")
    assert not found.maps.any()


def reference(model, x, k, layer):
    """Grad-CAM by retained gradients and torch's own interpolation."""
    kept = {}
    hook = dict(model.named_modules())[layer].register_forward_hook(
        lambda _m, _i, out: kept.update(a=out) or out.retain_grad()
    )
    model(x)[:, k].sum().backward()
    hook.remove()
    a, g = kept["a"].detach(), kept["a"].grad
    model.zero_grad()
    if x.ndim == 3:
        a, g = a.transpose(1, 2), g.transpose(1, 2)
    axes = tuple(range(2, a.ndim))
    cam = F.relu((g.mean(axes, keepdim=True) * a).sum(1, keepdim=True))
    mode = "linear" if x.ndim == 3 else "bilinear"
    cam = F.interpolate(cam.double(), size=x.shape[2:], mode=mode, align_corners=True)[:, 0]
    return (cam / cam.amax(tuple(range(1, cam.ndim)), keepdim=True)).numpy()


@pytest.mark.parametrize("name", MODELS)
def test_our_models_agree_with_another_implementation(name):
    model, samples = make_model(name).eval(), make_samples(name, 3)
    found = explain_classes(model, samples, 0, names=("b", "a", "c"), batch=2)
    expected = np.nan_to_num(
        reference(model, torch.from_numpy(samples), 0, model.attribution_layer)
    )
    assert found.maps.shape == (3, *samples.shape[2:])
    assert found.maps.dtype == np.float32
    np.testing.assert_allclose(found.maps, expected, atol=2e-4)
    assert found.classes == ("b",) * 3
    tops = found.maps.reshape(3, -1).max(axis=1)
    assert set(tops.tolist()) <= {0.0, 1.0}
    assert tops.any()
    assert found.maps.min() >= 0


def test_each_sample_may_have_its_own_class():
    model, samples = make_model("baseline"), make_samples("baseline", 3)
    mixed = explain_classes(model, samples, [2, 0, 1])
    for row, k in enumerate((2, 0, 1)):
        alone = explain_classes(model, samples, k)
        np.testing.assert_array_equal(mixed.maps[row], alone.maps[row])
    assert mixed.classes == ("2", "0", "1")


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_left_as_it_was(name):
    model, samples = make_model(name), make_samples(name, 2)
    model.train()
    model.stem.eval()
    frozen = next(model.parameters()).requires_grad_(False)
    model.head.weight.grad = torch.ones_like(model.head.weight)
    flags = [module.training for module in model.modules()]
    before, guard = seedless.digest(model), GeneratorGuard()
    torch.set_deterministic_debug_mode("default")
    explain_classes(model, samples, 0)
    assert [module.training for module in model.modules()] == flags
    assert seedless.digest(model) == before
    assert not frozen.requires_grad
    assert all(p.requires_grad for p in list(model.parameters())[1:])
    assert model.head.weight.grad.eq(1).all()
    assert all(p.grad is None for p in model.parameters() if p is not model.head.weight)
    assert guard.moved() == ()
    assert not torch.are_deterministic_algorithms_enabled()
    assert not any(module._forward_hooks for module in model.modules())


def test_frozen_models_and_no_grad_work_too():
    model, samples = make_model("conformer"), make_samples("conformer", 2)
    free = explain_classes(model, samples, 0)
    with torch.no_grad():
        frozen = explain_classes(model.requires_grad_(False), samples, 0)
    assert frozen.digest == free.digest


SCRIPT = """
from tests.evaluate.models import make_model, make_samples
from seedless.evaluate.gradcam import explain_classes
from seedless.evaluate.attention import explain_attention
import torch
torch.set_num_threads(1)
model, samples = make_model("conformer"), make_samples("conformer", 3)
print(explain_classes(model, samples, 0).digest)
print(*(one.digest for one in explain_attention(model, samples)))
"""


def test_two_processes_have_one_digest_and_a_flipped_bit_has_another(run_python):
    first = run_python("-c", SCRIPT, PYTHONHASHSEED=1).stdout
    second = run_python("-c", SCRIPT, PYTHONHASHSEED=2).stdout
    assert first == second
    assert first.count("sha256:") == 2
    model, samples = make_model("conformer"), make_samples("conformer", 3)
    before = explain_classes(model, samples, 0)
    flip_bit(model, "encoder.0.after.1.weight:0:22")
    after = explain_classes(model, samples, 0)
    assert before.digest != after.digest


def test_the_digest_covers_names_class_and_layer():
    model, samples = make_model("baseline"), make_samples("baseline", 2)
    digests = {
        explain_classes(model, samples, 0).digest,
        explain_classes(model, samples, 0, ids=("x", "y")).digest,
        explain_classes(model, samples, 0, names=("x", "y", "z")).digest,
        explain_classes(model, samples, 0, layer="stages.0").digest,
    }
    assert len(digests) == 4


@pytest.mark.parametrize(("steps", "length"), [(1, 7), (2, 2), (3, 9), (5, 12), (32, 1000), (9, 4)])
def test_upsampling_is_linear_interpolation(steps, length):
    values = np.cos(np.arange(steps) * 1.7)
    found = upsample(values[None], 1, length)[0]
    places = np.linspace(0, steps - 1, length) if steps > 1 else np.zeros(length)
    np.testing.assert_allclose(found, np.interp(places, np.arange(steps), values), atol=1e-12)
    assert found[0] == values[0]
    assert found[-1] == values[-1]


class Twice(Linear):
    def forward(self, x):
        return self.head((self.mix(x) + self.mix(2 * x)).mean(2))


class Unused(Linear):
    def forward(self, x):
        self.mix(x)
        return self.head(x.mean(2) @ torch.ones(2, 3))


class Overwriting(Linear):
    def forward(self, x):
        return self.head(self.mix(x).relu_().mean(2))


def test_a_layer_whose_output_is_overwritten_works():
    x = make_samples("baseline", 1)[:, :2]
    found = explain_classes(Overwriting(), x, 0, layer="mix")
    assert found.maps.shape == (1, x.shape[2])


def test_what_cannot_be_explained():
    x = np.ones((2, 2, 4), dtype=np.float32)
    model = Linear()
    with pytest.raises(ModelError, match="Linear declares no attribution layer"):
        explain_classes(model, x, 0)
    with pytest.raises(ModelError, match=r"no layer 'mixx' \(did you mean 'mix'\?\)"):
        explain_classes(model, x, 0, layer="mixx")
    with pytest.raises(ModelError, match="one tensor of 3 axes"):
        explain_classes(model, x, 0, layer="head")
    with pytest.raises(ModelError, match="it ran 2 times"):
        explain_classes(Twice(), x, 0, layer="mix")
    with pytest.raises(ModelError, match="do not depend on the layer 'mix'"):
        explain_classes(Unused(), x, 0, layer="mix")
    with pytest.raises(DataError, match="class numbers from 0 to 1, got 2"):
        explain_classes(model, x, 2, layer="mix")
    with pytest.raises(DataError, match="got -1"):
        explain_classes(model, x, [0, -1], layer="mix")
    with pytest.raises(DataError, match="for each of 2 samples"):
        explain_classes(model, x, [0, 1, 0], layer="mix")
    with pytest.raises(DataError, match="shape"):
        explain_classes(model, x[0], 0, layer="mix")
    with pytest.raises(DataError, match="one id, one class and one map"):
        explain_classes(model, x, 0, layer="mix", ids=("one",))
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    with pytest.raises(ModelError, match="not finite"):
        explain_classes(model, x, 0, layer="mix")
