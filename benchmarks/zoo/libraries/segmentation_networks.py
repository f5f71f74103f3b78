"""Networks of segmentation-models-pytorch: every architecture, and one of them on many encoders."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from benchmarks.zoo.libraries.torchvision_import import import_torchvision
from benchmarks.zoo.network import Given, Network

ARCHITECTURES = """
    DeepLabV3 DeepLabV3Plus FPN Linknet MAnet PAN PSPNet Segformer UPerNet Unet UnetPlusPlus
"""
ENCODERS = """
    efficientnet-b0 mobilenet_v2 mit_b0 timm-regnetx_002 densenet121 mobileone_s0
    tu-convnext_atto tu-resnest14d
"""
SIZES = {"PAN": 128}  # pixels, where 64 are too few


def _make(architecture: str, encoder: str) -> nn.Module:
    import_torchvision()
    import segmentation_models_pytorch as smp

    make: Any = getattr(smp, architecture)
    net: nn.Module = make(encoder_name=encoder, encoder_weights=None, classes=3)
    return net


def _describe(architecture: str, encoder: str) -> Network:
    size = SIZES.get(architecture, 64)
    given = Given((2, 3, size, size))
    return Network(f"smp/{architecture}-{encoder}", partial(_make, architecture, encoder), (given,))


NETWORKS = [
    *(_describe(name, "resnet18") for name in ARCHITECTURES.split()),
    *(_describe("Unet", encoder) for encoder in ENCODERS.split()),
]
