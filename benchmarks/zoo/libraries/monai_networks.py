"""Networks of MONAI for medical images, in two and three dimensions."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from benchmarks.zoo.libraries.torchvision_import import import_torchvision
from benchmarks.zoo.network import Given, Network

PLANE, VOLUME = Given((2, 1, 64, 64)), Given((1, 1, 32, 32, 32))
COLOUR = Given((2, 3, 64, 64))
UNET: dict[str, Any] = {"channels": (8, 16, 32), "strides": (2, 2)}
DYNAMIC: dict[str, Any] = {
    "kernel_size": [3, 3, 3],
    "strides": [1, 2, 2],
    "upsample_kernel_size": [2, 2],
    "filters": [8, 16, 32],
}
VIT: dict[str, Any] = {"hidden_size": 48, "mlp_dim": 96, "num_layers": 2, "num_heads": 4}
KL: dict[str, Any] = {
    "channels": (8, 8, 8),
    "attention_levels": (False, False, True),
    "num_res_blocks": 1,
    "norm_num_groups": 4,
    "latent_channels": 2,
}
IO: dict[str, Any] = {"in_channels": 1, "out_channels": 2}
RESNET: dict[str, Any] = {"n_input_channels": 1, "num_classes": 3}
SMALL_RESNET: dict[str, Any] = {
    "block": "basic",
    "layers": [1, 1, 1, 1],
    "block_inplanes": [8, 16, 32, 64],
}


def _make(name: str, **settings: Any) -> nn.Module:
    import_torchvision()
    import monai.networks.nets

    net: nn.Module = getattr(monai.networks.nets, name)(**settings)
    return net


def _describe(label: str, name: str, *given: Given, **settings: Any) -> Network:
    return Network(f"monai/{label}", partial(_make, name, **settings), given)


NETWORKS = [
    _describe("UNet-2d", "UNet", PLANE, spatial_dims=2, **IO, **UNET, num_res_units=2),
    _describe("UNet-3d", "UNet", VOLUME, spatial_dims=3, **IO, **UNET, num_res_units=1),
    _describe("AttentionUnet", "AttentionUnet", PLANE, spatial_dims=2, **IO, **UNET),
    _describe("BasicUNet", "BasicUNet", PLANE, spatial_dims=2, features=(8, 8, 16, 16, 32, 8)),
    _describe(
        "BasicUNetPlusPlus",
        "BasicUNetPlusPlus",
        PLANE,
        spatial_dims=2,
        features=(8, 8, 16, 16, 32, 8),
    ),
    _describe("DynUNet", "DynUNet", VOLUME, spatial_dims=3, **IO, **DYNAMIC, res_block=True),
    _describe("SegResNet", "SegResNet", VOLUME, spatial_dims=3, init_filters=8, **IO),
    _describe("SegResNetDS", "SegResNetDS", VOLUME, spatial_dims=3, init_filters=8, **IO),
    _describe(
        "SegResNetVAE",
        "SegResNetVAE",
        VOLUME,
        input_image_size=(32, 32, 32),
        vae_estimate_std=False,
        init_filters=8,
        **IO,
    ),
    _describe("VNet", "VNet", VOLUME, spatial_dims=3, **IO),
    _describe(
        "UNETR",
        "UNETR",
        VOLUME,
        img_size=32,
        feature_size=8,
        hidden_size=48,
        mlp_dim=96,
        num_heads=4,
        **IO,
    ),
    _describe("SwinUNETR", "SwinUNETR", PLANE, spatial_dims=2, feature_size=12, **IO),
    _describe("MedNeXt", "MedNeXt", VOLUME, spatial_dims=3, init_filters=8, **IO),
    _describe("HighResNet", "HighResNet", VOLUME, spatial_dims=3, **IO),
    _describe(
        "FlexibleUNet",
        "FlexibleUNet",
        COLOUR,
        in_channels=3,
        out_channels=2,
        backbone="efficientnet-b0",
    ),
    _describe(
        "DenseNet",
        "DenseNet",
        VOLUME,
        spatial_dims=3,
        init_features=8,
        growth_rate=4,
        block_config=(2, 2, 2),
        **IO,
    ),
    _describe("DenseNet121", "DenseNet121", PLANE, spatial_dims=2, **IO),
    _describe(
        "EfficientNetBN",
        "EfficientNetBN",
        PLANE,
        model_name="efficientnet-b0",
        pretrained=False,
        spatial_dims=2,
        in_channels=1,
        num_classes=3,
    ),
    _describe("ResNet-2d", "ResNet", PLANE, spatial_dims=2, **RESNET, **SMALL_RESNET),
    _describe("ResNet-3d", "ResNet", VOLUME, spatial_dims=3, **RESNET, **SMALL_RESNET),
    _describe("SEResNet50", "SEResNet50", COLOUR, spatial_dims=2, in_channels=3, num_classes=3),
    _describe("SEResNext50", "SEResNext50", COLOUR, spatial_dims=2, in_channels=3, num_classes=3),
    _describe(
        "ViT",
        "ViT",
        VOLUME,
        in_channels=1,
        img_size=(32, 32, 32),
        patch_size=(16, 16, 16),
        classification=True,
        **VIT,
    ),
    _describe(
        "ViTAutoEnc",
        "ViTAutoEnc",
        VOLUME,
        in_channels=1,
        img_size=(32, 32, 32),
        patch_size=(16, 16, 16),
        **VIT,
    ),
    _describe(
        "MILModel",
        "MILModel",
        Given((2, 3, 3, 64, 64)),
        num_classes=3,
        mil_mode="att_trans",
        pretrained=False,
        backbone="resnet18",
    ),
    _describe(
        "AutoEncoder", "AutoEncoder", PLANE, spatial_dims=2, **IO, channels=(8, 16), strides=(2, 2)
    ),
    _describe("AutoencoderKL", "AutoencoderKL", PLANE, spatial_dims=2, **IO, **KL),
    _describe(
        "VQVAE",
        "VQVAE",
        PLANE,
        spatial_dims=2,
        channels=(8, 16),
        num_res_channels=(8, 16),
        num_res_layers=1,
        downsample_parameters=((2, 4, 1, 1),) * 2,
        upsample_parameters=((2, 4, 1, 1, 0),) * 2,
        num_embeddings=16,
        embedding_dim=8,
        **IO,
    ),
    _describe(
        "DiffusionModelUNet",
        "DiffusionModelUNet",
        PLANE,
        Given((2,), below=50),
        spatial_dims=2,
        in_channels=1,
        out_channels=1,
        channels=(8, 16),
        attention_levels=(False, True),
        num_res_blocks=1,
        num_head_channels=8,
        norm_num_groups=4,
    ),
    _describe(
        "DecoderOnlyTransformer",
        "DecoderOnlyTransformer",
        Given((2, 9), below=20),
        num_tokens=20,
        max_seq_len=12,
        attn_layers_dim=24,
        attn_layers_depth=2,
        attn_layers_heads=4,
    ),
    _describe(
        "PatchDiscriminator",
        "PatchDiscriminator",
        PLANE,
        spatial_dims=2,
        channels=8,
        in_channels=1,
        num_layers_d=2,
    ),
    _describe(
        "Classifier",
        "Classifier",
        PLANE,
        in_shape=(1, 64, 64),
        classes=3,
        channels=(4, 8, 16),
        strides=(2, 2, 2),
    ),
    _describe(
        "Regressor",
        "Regressor",
        PLANE,
        in_shape=(1, 64, 64),
        out_shape=(2,),
        channels=(4, 8, 16),
        strides=(2, 2, 2),
    ),
    _describe(
        "FullyConnectedNet",
        "FullyConnectedNet",
        Given((4, 12)),
        in_channels=12,
        out_channels=3,
        hidden_channels=[16, 8],
    ),
    _describe(
        "VoxelMorph",
        "VoxelMorph",
        *[Given((1, 1, 32, 32))] * 2,
        spatial_dims=2,
        backbone=None,
        integration_steps=2,
    ),
    _describe(
        "LocalNet",
        "LocalNet",
        PLANE,
        spatial_dims=2,
        in_channels=1,
        num_channel_initial=8,
        extract_levels=(0, 1, 2),
        out_kernel_initializer="kaiming_uniform",
        out_activation=None,
        out_channels=2,
    ),
    _describe(
        "GlobalNet",
        "GlobalNet",
        PLANE,
        image_size=(64, 64),
        spatial_dims=2,
        in_channels=1,
        num_channel_initial=8,
        depth=2,
    ),
    _describe("Quicknat", "Quicknat", PLANE, num_classes=3, num_channels=1, num_filters=8),
    _describe("HoVerNet", "HoVerNet", Given((1, 3, 256, 256)), out_classes=2),
    _describe("DAF3D", "DAF3D", VOLUME, **IO),
]
