"""Crop and flip: pure functions of sample and epoch, checked against plain slicing."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from seedless.core.digests import sample_keys
from seedless.core.errors import DataError
from seedless.data.augment import crop_and_flip, draw_shifts

KEYS = torch.arange(64) * 2**55 + 3


def images(n=64):
    return torch.arange(n * 2 * 6 * 5.0).view(n, 2, 6, 5) + 1


def test_it_is_padding_slicing_and_mirroring():
    x, padding = images(), 2
    down, right, mirrored = draw_shifts(KEYS, 7, padding)
    expected = []
    for image, d, r, m in zip(x.numpy(), down.tolist(), right.tolist(), mirrored, strict=True):
        padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
        crop = padded[:, d : d + 6, r : r + 5]
        expected.append(crop[:, :, ::-1] if m else crop)
    out = crop_and_flip(x, samples=KEYS, epoch=7, padding=padding)
    np.testing.assert_array_equal(out.numpy(), np.stack(expected))


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_on_a_cpu_images_are_stored_channel_by_channel(channels):
    """In the other layout, torch's strided 1x1 convolutions of few channels write out of bounds."""
    x = torch.arange(64 * channels * 30.0).view(64, channels, 6, 5)
    out = crop_and_flip(x, samples=KEYS, epoch=7, padding=2)
    assert out.stride() == x.stride()  # of one channel, both layouts are contiguous to torch


# With images of 64 pixels, torch's kernel wrote so far out of bounds that the process ended.
SMALL_RESNET = """
import torch
from seedless.data.augment import crop_and_flip
from seedless.models import build

torch.set_num_threads(2)
net = build("resnet18", channels={channels}, classes=2, small=True)
x = torch.arange(16 * {channels} * 64 * 64.0).view(16, {channels}, 64, 64).sin()
for epoch in range(3):
    moved = crop_and_flip(x, samples=torch.arange(16), epoch=epoch, padding=2)
    net(moved).square().sum().backward()
"""


@pytest.mark.parametrize("channels", [1, 3])
def test_a_step_on_augmented_images_of_64_pixels_ends(channels):
    command = [sys.executable, "-c", SMALL_RESNET.format(channels=channels)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_shifts_cover_their_range_evenly():
    keys = torch.arange(30_000)
    down, right, mirrored = draw_shifts(keys, 0, 2)
    for shift in (down, right):
        share = np.bincount(shift.numpy(), minlength=5) / len(keys)
        np.testing.assert_allclose(share, 0.2, atol=0.015)
    assert float(mirrored.float().mean()) == pytest.approx(0.5, abs=0.015)
    together = np.corrcoef(down.numpy(), right.numpy())[0, 1]
    assert abs(together) < 0.03


def test_place_in_the_batch_does_not_matter_but_epoch_and_sample_do():
    x = images()
    whole = crop_and_flip(x, samples=KEYS, epoch=1, padding=2)
    order = torch.arange(63, -1, -1)
    turned = crop_and_flip(x[order], samples=KEYS[order], epoch=1, padding=2)
    assert torch.equal(turned, whole[order])
    assert not torch.equal(crop_and_flip(x, samples=KEYS, epoch=2, padding=2), whole)
    assert torch.equal(crop_and_flip(x, samples=KEYS, epoch=torch.tensor(1), padding=2), whole)


def test_negative_control_keys_by_position_see_the_order():
    x, order, places = images(), torch.arange(63, -1, -1), torch.arange(64)
    whole = crop_and_flip(x, samples=places, epoch=1, padding=2)
    assert not torch.equal(
        crop_and_flip(x[order], samples=places, epoch=1, padding=2), whole[order]
    )


def test_no_padding_and_no_flip_is_the_identity():
    x = images()
    assert torch.equal(crop_and_flip(x, samples=KEYS, epoch=3, padding=0, flip=False), x)


def test_keys_come_from_content():
    samples = images(4).numpy()
    keys = sample_keys(samples)
    assert keys.dtype == np.int64
    assert len(set(keys.tolist())) == 4
    np.testing.assert_array_equal(keys[[2, 0]], sample_keys(samples[[2, 0]]))


def test_no_generator_moves():
    before = torch.get_rng_state()
    crop_and_flip(images(), samples=KEYS, epoch=0, padding=2)
    assert torch.equal(before, torch.get_rng_state())


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="one int64 key for each"):
        crop_and_flip(images(), samples=KEYS[:3], epoch=0, padding=2)
    with pytest.raises(DataError, match="one int64 key for each"):
        crop_and_flip(images()[0], samples=KEYS, epoch=0, padding=2)
