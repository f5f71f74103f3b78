"""Every network of the zoo, by name."""

from __future__ import annotations

import fnmatch

from benchmarks.zoo.libraries import (
    ecg_networks,
    monai_networks,
    segmentation_networks,
    timm_networks,
    torchvision_networks,
    transformers_signals,
    transformers_text,
)
from benchmarks.zoo.network import Network

NETWORKS: dict[str, Network] = {
    network.name: network
    for module in (
        timm_networks,
        transformers_text,
        transformers_signals,
        torchvision_networks,
        monai_networks,
        segmentation_networks,
        ecg_networks,
    )
    for network in module.NETWORKS
}


def find_networks(pattern: str) -> list[str]:
    """Return the names that match a shell pattern, such as ``timm/*`` or ``*resnet*``."""
    return [name for name in NETWORKS if fnmatch.fnmatch(name, pattern)]
