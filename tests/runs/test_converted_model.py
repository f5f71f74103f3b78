"""A converted model in `fit`: its masks do not depend on how a batch is split."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import seedless

X = np.sin(np.arange(32 * 8, dtype=np.float32).reshape(32, 8))
Y = np.arange(32) % 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 3)

    def forward(self, x):
        x = F.dropout(self.drop(torch.relu(self.first(x))), 0.2, self.training)
        return self.last(x)


def make():
    return seedless.convert(Net())


def fit(out, microbatch):
    config = {
        "train": {"epochs": 2, "microbatch": microbatch},
        "order": {"batch_size": 16},
        "execution": {"arithmetic": "portable"},
    }
    return seedless.fit(make, (X, Y), (X + 1, Y), config=config, out=out)


def test_micro_batches_change_nothing_and_the_run_verifies(tmp_path):
    whole, split = fit(tmp_path / "whole", 16), fit(tmp_path / "split", 4)
    assert split.digest == whole.digest
    verdict = seedless.verify(split, model=make, train=(X, Y), val=(X + 1, Y))
    assert verdict.outcome == "identical"
