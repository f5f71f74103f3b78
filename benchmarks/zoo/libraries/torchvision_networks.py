"""Networks of torchvision: classifiers, segmentation, video and optical flow."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from benchmarks.zoo.libraries.torchvision_import import import_torchvision
from benchmarks.zoo.network import Given, Network

CLASSIFIERS = """
    convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet mnasnet0_5
    mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnext50_32x4d
    shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t
"""


def _make(path: str, **settings: Any) -> nn.Module:
    import_torchvision()
    import torchvision

    make: Any = torchvision.models
    for part in path.split("."):
        make = getattr(make, part)
    net: nn.Module = make(weights=None, **settings)
    return net


def _describe(path: str, *given: Given, **settings: Any) -> Network:
    name = path.rpartition(".")[2]
    return Network(f"torchvision/{name}", partial(_make, path, **settings), given)


SETTINGS = {"googlenet": {"init_weights": True}}
IMAGE, CLIP = Given((2, 3, 64, 64)), Given((1, 3, 4, 32, 32))
NETWORKS = [
    *(
        _describe(
            name, IMAGE, num_classes=10, **({"init_weights": True} if name == "googlenet" else {})
        )
        for name in CLASSIFIERS.split()
    ),
    _describe(
        "segmentation.deeplabv3_mobilenet_v3_large", IMAGE, num_classes=5, weights_backbone=None
    ),
    _describe("segmentation.fcn_resnet50", IMAGE, num_classes=5, weights_backbone=None),
    _describe(
        "segmentation.lraspp_mobilenet_v3_large", IMAGE, num_classes=5, weights_backbone=None
    ),
    _describe("video.r3d_18", CLIP, num_classes=10),
    _describe("video.mc3_18", CLIP, num_classes=10),
    _describe("video.r2plus1d_18", CLIP, num_classes=10),
    _describe("video.swin3d_t", Given((1, 3, 4, 64, 64)), num_classes=10),
    _describe("optical_flow.raft_small", *[Given((1, 3, 128, 128))] * 2),
]
