"""Networks of timm that starts are compared on."""

from __future__ import annotations

import torch
from torch import nn

import seedless
from benchmarks.starts.images import Images
from benchmarks.starts.plan import OWN
from benchmarks.zoo.libraries.torchvision_import import import_torchvision
from seedless.init.starts import list_starts


def build(name: str, images: Images, seed: int = 0) -> nn.Module:
    """Return a network as timm initializes it from a seed of torch, without dropout."""
    import_torchvision()
    import timm

    torch.manual_seed(seed)
    model: nn.Module = timm.create_model(
        name, in_chans=images.channels, num_classes=images.classes, drop_rate=0.0
    )
    return model


def build_started(name: str, images: Images, start: str, replicate: int) -> nn.Module:
    """Return a network with a start; replicates of it where the start has any.

    The library's own start is drawn from torch's generator with the replicate as its seed, the
    seed-free ones have it as their offset, and `dct` is the same for all of them.
    """
    model = build(name, images, replicate)
    if start == OWN:
        return model
    offset = replicate if start in list_starts("offset") else 0
    seedless.initialize(model, start, offset=offset)
    return model
