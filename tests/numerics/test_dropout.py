"""Dropout as a pure function: of sample, epoch, layer and element, and of nothing else."""

import pytest
import torch
from torch import nn

import seedless
from seedless.core.errors import NumericsError
from seedless.numerics.dropout import check_layers, dropout, keep_mask
from tests.numerics import reference

KEYS = torch.tensor([5, -7, 2**62 + 11, 0])


def drop(x, p=0.5, samples=KEYS, epoch=0, layer=0, axis=0):
    return dropout(x, p, samples=samples, epoch=epoch, layer=layer, axis=axis)


def test_it_agrees_with_the_reference_loop():
    x = torch.arange(4 * 3 * 7.0).view(4, 3, 7) + 1
    for p in (0.1, 0.5, 0.9):
        slow = reference.dropout(x.numpy(), p, samples=KEYS.tolist(), epoch=3, layer=2)
        torch.testing.assert_close(drop(x, p, epoch=3, layer=2), torch.from_numpy(slow))


def test_rate_and_scale():
    x = torch.ones(4, 50_000)
    y = drop(x, 0.25)
    assert y.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float((y == 0).float().mean()) == pytest.approx(0.25, abs=0.005)


def test_position_in_the_batch_does_not_matter():
    x = torch.randn(4, 33, generator=torch.Generator().manual_seed(0))
    whole = drop(x)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.equal(drop(x[order], samples=KEYS[order]), whole[order])
    split = torch.cat([drop(x[:1], samples=KEYS[:1]), drop(x[1:], samples=KEYS[1:])])
    assert torch.equal(split, whole)


def test_negative_control_keys_by_position_see_the_split():
    x = torch.ones(4, 33)
    halves = [drop(half, samples=torch.arange(2)) for half in (x[:2], x[2:])]
    assert not torch.equal(torch.cat(halves), drop(x, samples=torch.arange(4)))


def test_sample_epoch_and_layer_each_change_the_mask():
    shape = torch.Size([1, 256])
    masks = [
        keep_mask(shape, 0.5, samples=torch.tensor([sample]), epoch=epoch, layer=layer)
        for sample, epoch, layer in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    ]
    for i, first in enumerate(masks):
        for second in masks[i + 1 :]:
            assert 64 < int((first != second).sum()) < 192


def test_the_epoch_may_be_a_tensor():
    x = torch.ones(4, 20)
    assert torch.equal(drop(x, epoch=torch.tensor(9)), drop(x, epoch=9))


def test_gradients_pass_where_values_did():
    x = torch.ones(4, 30, dtype=torch.float64, requires_grad=True)
    y = drop(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(("p", "value"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_ends(p, value):
    assert (drop(torch.ones(4, 9), p) == value).all()


def test_the_layer_needs_the_keys_of_the_samples():
    layer = seedless.Dropout(0.5, layer=0)
    x = torch.ones(4, 16)
    with pytest.raises(NumericsError, match=r"seedless\.dropout_keys"):
        layer(x)
    with seedless.dropout_keys(samples=KEYS, epoch=1):
        first, second = layer(x), layer(x)
    assert torch.equal(first, second)
    with seedless.dropout_keys(samples=KEYS, epoch=2):
        assert not torch.equal(layer(x), first)
    assert torch.equal(layer.eval()(x), x)


def test_no_generator_moves_where_pytorchs_own_dropout_moves_one():
    before = torch.get_rng_state()
    with seedless.dropout_keys(samples=KEYS, epoch=0):
        seedless.Dropout(0.5, layer=0)(torch.ones(4, 8))
    assert torch.equal(before, torch.get_rng_state())
    nn.Dropout(0.5)(torch.ones(4, 8))
    assert not torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_bad_rates(p):
    with pytest.raises(NumericsError, match="probability"):
        seedless.Dropout(p, layer=0)
    with pytest.raises(NumericsError, match="probability"):
        drop(torch.ones(4, 2), p)


@pytest.mark.parametrize("word", [-1, 2**32, True, "x"])
def test_epochs_and_layers_are_32_bits(word):
    with pytest.raises(NumericsError, match="layer to be an integer from 0"):
        seedless.Dropout(0.5, layer=word)
    with (
        pytest.raises(NumericsError, match="epoch to be an integer from 0"),
        seedless.dropout_keys(samples=KEYS, epoch=word),
    ):
        pass


@pytest.mark.parametrize("samples", [KEYS[:2], KEYS.float()])
def test_bad_keys(samples):
    with pytest.raises(NumericsError, match="one int64 key for each sample"):
        drop(torch.ones(4, 2), samples=samples)


def test_two_dropouts_of_one_layer_are_refused():
    shared = seedless.Dropout(0.5, layer=0)
    check_layers(nn.Sequential(shared, nn.Linear(2, 2), shared, seedless.Dropout(0.5, layer=1)))
    clashing = nn.Sequential(shared, nn.Linear(2, 2), seedless.Dropout(0.1, layer=0))
    with pytest.raises(NumericsError, match=r"0 and 2 are both Dropout\(layer=0\)"):
        check_layers(clashing)


# The axis of the samples


def test_input_with_time_first_has_the_masks_of_input_with_samples_first():
    x = torch.arange(4 * 6 * 5.0).view(4, 6, 5) + 1
    layer = seedless.Dropout(0.5, layer=0)
    first, second = (seedless.Dropout(0.5, layer=0, axis=axis) for axis in (0, 1))
    with seedless.dropout_keys(samples=KEYS, epoch=0):
        expected = layer(x)
        assert torch.equal(first(x), expected)
        assert torch.equal(second(x.transpose(0, 1)).transpose(0, 1), expected)
    with seedless.dropout_keys(samples=KEYS, epoch=0, axis=1):
        assert torch.equal(layer(x.transpose(0, 1)).transpose(0, 1), expected)
        assert torch.equal(first(x), expected)  # the layer's own axis comes first
    with seedless.dropout_keys(samples=KEYS, epoch=0, axis=-2):
        assert torch.equal(layer(x.transpose(0, 1)).transpose(0, 1), expected)


def test_as_many_steps_as_samples_need_the_axis():
    x = torch.ones(4, 4, 16)
    layer = seedless.Dropout(0.5, layer=0)
    with (
        seedless.dropout_keys(samples=KEYS, epoch=0),
        pytest.raises(NumericsError, match=r"shape \(4, 4, 16\).* samples on axis 0 or 1"),
    ):
        layer(x)
    masks = []
    for axis in (0, 1):
        with seedless.dropout_keys(samples=KEYS, epoch=0, axis=axis):
            masks.append(layer(x))
    assert torch.equal(masks[0], drop(x))
    assert torch.equal(masks[1], masks[0].transpose(0, 1))
    assert not torch.equal(masks[0], masks[1])


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 3, 3)])
def test_features_as_many_as_samples_are_not_taken_for_steps(shape):
    x = torch.ones(shape)
    with seedless.dropout_keys(samples=KEYS, epoch=0):
        assert torch.equal(seedless.Dropout(0.5, layer=0)(x), drop(x))


@pytest.mark.parametrize("axis", [3, -4, True, "time"])
def test_an_axis_that_the_input_does_not_have_is_refused(axis):
    with pytest.raises(NumericsError, match="axis"):
        drop(torch.ones(4, 4, 2), axis=axis)
