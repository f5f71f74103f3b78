"""`fit` trains a 3-D UNet of MONAI's on volumes with masks, with MONAI's Dice loss."""

from functools import partial

import numpy as np
import pytest

import seedless
from tests.runs.user_problems import SETTINGS

pytest.importorskip("monai")

from monai.losses import DiceLoss
from monai.networks.nets import UNet

make_unet = partial(
    UNet, spatial_dims=3, in_channels=1, out_channels=1, channels=(4, 8), strides=(2,)
)


class Volumes:
    """Balls of different sizes in noise, and their masks: (1, 8, 8, 8) each."""

    def __init__(self, rows):
        self.rows = list(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        distance = np.square(np.indices((8, 8, 8)) - 3.5).sum(axis=0)
        mask = (distance < 4 + row % 7).astype(np.float32)[None]
        noise = np.sin(np.arange(512).reshape(mask.shape) * (row + 1.5))
        return (mask + 0.3 * noise).astype(np.float32), mask


def overlap(outputs, targets):
    """The share of each mask that is found."""
    found = (outputs > 0) * targets
    return found.flatten(1).sum(dim=1) / targets.flatten(1).sum(dim=1)


def test_a_unet_with_masks_and_dice_loss_is_verified(tmp_path):
    arguments = {
        "train": Volumes(range(10)),
        "val": Volumes(range(10, 14)),
        "loss": DiceLoss(sigmoid=True),
        "metrics": {"overlap": overlap},
        "workers": 2,
    }
    run = seedless.fit(make_unet, **arguments, config=SETTINGS, out=tmp_path / "run")
    assert 0 <= run.metrics["validation"]["overlap"] <= 1
    again = {**arguments, "workers": 0}
    verdict = seedless.verify(run, model=make_unet, **again)
    assert verdict.outcome == "identical", verdict.details
