"""What every framework trains in these tests: a small network on six batches an epoch."""

import importlib

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

BATCHES = 6  # of an epoch
EPOCHS = 3


def load_loop(framework):
    """Return the training of a framework; skip the test where its package is not installed."""
    pytest.importorskip(framework, reason="needs the extra `integrations`")
    return importlib.import_module(f"tests.integrations.{framework}_loop").train


def make_data():
    """Return 24 samples of 4 numbers, with labels."""
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(
        torch.randn(24, 4, generator=generator), torch.randint(2, (24,), generator=generator)
    )


def make_network(dropout=0.5):
    """Return a network that draws in each step."""
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(dropout), nn.Linear(8, 2))


def make_optimizer(network):
    """Return an optimizer, and a schedule whose rate is 0 after the last step."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * BATCHES)
