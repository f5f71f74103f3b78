"""Attention maps: rows of weights sum to 1, give the block's own output, and change no bit."""

import numpy as np
import pytest
import torch

from seedless.core.errors import ModelError
from seedless.evaluate.attention import average_attention, explain_attention
from seedless.evaluate.attribution import upsample
from seedless.train.bit_flip import flip_bit
from tests.evaluate.models import make_model, make_samples


def blocks(model):
    return {name: m for name, m in model.named_modules() if name.endswith(".attention")}


def test_weights_sum_to_one_and_give_the_blocks_output():
    model, samples = make_model("conformer").eval(), make_samples("conformer", 2)
    kept = {}
    for name, block in blocks(model).items():
        block.register_forward_hook(
            lambda _m, inputs, out, name=name: kept.update({name: (inputs[0], out)})
        )
    with torch.no_grad():
        model(torch.from_numpy(samples))
        weights = average_attention(model, torch.from_numpy(samples))
        assert list(weights) == list(blocks(model)) != []
        for name, block in blocks(model).items():
            x, out = kept[name]
            again, attention = block.attend(x)
            torch.testing.assert_close(again, out, rtol=0, atol=0)
            np.testing.assert_allclose(attention.sum(-1), 1, rtol=1e-6)
            # By hand: softmax(q k / sqrt d) v through the output layer, one head at a time.
            q, k, v = block.qkv(x).chunk(3, -1)
            size = x.shape[-1] // block.heads
            heads, means = [], []
            for h in range(block.heads):
                cut = slice(h * size, (h + 1) * size)
                rows = torch.softmax(q[..., cut] @ k[..., cut].mT / size**0.5, -1)
                heads.append(rows @ v[..., cut])
                means.append(rows.mean(1))
            torch.testing.assert_close(block.out(torch.cat(heads, -1)), out)
            expected = torch.stack(means).mean(0).numpy()
            np.testing.assert_allclose(weights[name], expected, rtol=1e-5)
            np.testing.assert_allclose(weights[name].sum(1), 1, rtol=1e-6)


def test_maps_are_upsampled_and_largest_at_one():
    model, samples = make_model("conformer"), make_samples("conformer", 3)
    found = explain_attention(model, samples, ids=("a", "b", "c"), batch=2)
    weights = average_attention(model, torch.from_numpy(samples[:2]))
    assert [one.layer for one in found] == list(blocks(model))
    for one in found:
        raw = upsample(weights[one.layer], 1, samples.shape[2])
        expected = raw / raw.max(axis=1, keepdims=True)
        np.testing.assert_allclose(one.maps[:2], expected, rtol=1e-6)
        assert one.maps.shape == (3, samples.shape[2])
        assert one.classes == ("", "", "")
        assert one.method == "attention"


def test_looking_changes_no_bit_and_leaves_no_trace():
    model, samples = make_model("conformer"), make_samples("conformer", 2)
    model.train()
    plain = model(torch.from_numpy(samples))
    first = explain_attention(model, samples)
    assert model.training
    assert not any(module._forward_pre_hooks for module in model.modules())
    torch.testing.assert_close(model(torch.from_numpy(samples)), plain, rtol=0, atol=0)
    flip_bit(model, "encoder.0.attention.qkv.weight:5:22")
    assert explain_attention(model, samples)[0].digest != first[0].digest


def test_a_model_without_attention_says_so():
    with pytest.raises(ModelError, match="Baseline has no attention"):
        explain_attention(make_model("baseline"), make_samples("baseline", 1))
