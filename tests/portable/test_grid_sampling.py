"""Sampling at the points of a grid agrees with torch, and does not depend on how it is called."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from seedless.core.errors import NumericsError
from seedless.portable.mode import portable
from seedless.portable.ops.grid_sampling import REFLECTION, move_inside
from seedless.portable.ops.registry import REGISTRY
from tests.portable.reference_cases import some
from tests.portable.test_layers import compare

IMAGE, POINTS = some(2, 3, 5, 4), some(2, 6, 3, 2, name="points", scale=1.7)
VOLUME, PLACES = some(1, 2, 4, 3, 5), some(1, 2, 3, 4, 3, name="places", scale=1.7)
PADDINGS = ("zeros", "border", "reflection")
FLAT = list(itertools.product(("bilinear", "nearest", "bicubic"), PADDINGS, (False, True)))
DEEP = list(itertools.product(("bilinear", "nearest"), PADDINGS, (False, True)))


def sample(_, x, grid, mode, padding, aligned):
    return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=aligned)


@pytest.mark.parametrize(("mode", "padding", "aligned"), FLAT)
def test_an_image_is_sampled_as_torch_does(mode, padding, aligned):
    compare(lambda *given: sample(*given, mode, padding, aligned), None, (IMAGE, POINTS))


@pytest.mark.parametrize(("mode", "padding", "aligned"), DEEP)
def test_a_volume_is_sampled_as_torch_does(mode, padding, aligned):
    compare(lambda *given: sample(*given, mode, padding, aligned), None, (VOLUME, PLACES))


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid")  # torch's
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 1, 6), (1, 2, 3, 4, 2)])
def test_an_affine_grid_is_torchs(size, aligned):
    axes = len(size) - 2
    theta = some(size[0], axes, axes + 1)
    compare(lambda _, one: F.affine_grid(one, list(size), align_corners=aligned), None, (theta,))


def test_the_op_of_cudnn_has_the_same_bits():
    """A GPU may call cuDNN's op where a CPU calls grid_sampler_2d."""
    here, cudnn = (REGISTRY[f"aten::{op}"] for op in ("grid_sampler_2d", "cudnn_grid_sampler"))
    assert torch.equal(here(IMAGE, POINTS, 0, 0, True), cudnn(IMAGE, POINTS))
    grad = some(2, 3, 6, 3, name="grad")
    back, back_of_cudnn = (
        REGISTRY[f"aten::{op}_backward"] for op in ("grid_sampler_2d", "cudnn_grid_sampler")
    )
    ours = back(grad, IMAGE, POINTS, 0, 0, True, [True, True])
    theirs = back_of_cudnn(IMAGE, POINTS, grad)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_only_the_gradients_that_are_asked_for_are_computed():
    back = REGISTRY["aten::grid_sampler_2d_backward"]
    for mask in ([True, False], [False, True]):
        found = back(some(2, 3, 6, 3), IMAGE, POINTS, 0, 0, False, mask)
        assert [one is not None for one in found] == mask


def test_points_that_are_no_numbers_or_far_outside():
    """A NaN counts as -1, as torch documents it; infinite values outside are not read."""
    grid = torch.tensor([[[[math.nan, 0.0], [-1.0, 0.0], [math.inf, 0.0], [1e30, 1e30]]]])
    image = some(1, 2, 3, 3)
    image[..., 2] = math.inf
    out = REGISTRY["aten::grid_sampler_2d"](image, grid, 0, 0, True)[0, :, 0]
    assert torch.equal(out[:, 0], out[:, 1])
    assert bool((out[:, 2:] == 0).all())


def test_a_reflection_over_an_axis_of_one_value_is_that_value():
    position, factor = move_inside(torch.tensor([-3.0, 0.2, 8.0]).double(), 1, REFLECTION, True)
    assert position.tolist() == factor.tolist() == [0.0, 0.0, 0.0]


def test_training_a_spatial_transformer_repeats_with_other_threads():
    def train(threads):
        torch.set_num_threads(threads)
        layer = nn.Linear(60, 6)
        with torch.no_grad():
            layer.weight.copy_(some(6, 60, name="weight", scale=0.1))
            layer.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
        x = IMAGE.repeat(8, 1, 3, 3).requires_grad_()
        with portable():
            theta = layer(x[..., :5, :4].flatten(1)).view(-1, 2, 3)
            grid = F.affine_grid(theta, list(x.shape), align_corners=False)
            F.grid_sample(x, grid, align_corners=False).square().mean().backward()
        return layer.weight.grad, x.grad

    before = torch.get_num_threads()
    try:
        one, two = train(1), train(2)
    finally:
        torch.set_num_threads(before)
    assert bool(one[0].any())
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_an_index_outside_the_output_of_max_unpool_is_refused():
    x, indices = F.max_pool2d(IMAGE, 2, return_indices=True)
    with portable(), pytest.raises(NumericsError, match="from 0 to 3 for an output of size"):
        torch.ops.aten.max_unpool2d(x, indices, [2, 2])


def test_max_unpool_keeps_the_last_of_several_values_with_one_index():
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    indices = torch.tensor([[[[0, 5], [0, 2]]]])
    found = REGISTRY["aten::max_unpool2d"](x, indices, [2, 3])
    assert found.tolist() == [[[[3.0, 0.0, 4.0], [0.0, 0.0, 2.0]]]]
