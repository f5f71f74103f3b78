"""Image classifiers of timm: at least one small network of nearly every family it has."""

from __future__ import annotations

from functools import partial

from torch import nn

from benchmarks.zoo.libraries.torchvision_import import import_torchvision
from benchmarks.zoo.network import Given, Network

CLASSES = 10
BATCH = 2
# Networks that take images of any size, of 64 x 64 pixels here.
ANY_SIZE = """
    mobileone_s1 gernet_s repvgg_a0 regnetz_b16 lambda_resnet26t convnext_zepto_rms convnext_atto
    convnextv2_atto cpubone_nano cs3darknet_s cspresnet50 darknet17 densenet121 densenetblur121d
    dla34 dla46x_c dla60_res2next dpn48b edgenext_xx_small efficientnet_lite0 efficientnet_b0
    efficientnetv2_rw_t mixnet_s tinynet_e mnasnet_small spnasnet_100 fbnetc_100 lcnet_050
    mobilenetv2_050 mobilenetv4_conv_small mobilenetv3_small_050 rexnet_100 fasternet_t0
    fastvit_t8 focalnet_tiny_srf ghostnet_050 ghostnetv2_100 ghostnetv3_050 hardcorenas_b
    hgnetv2_b0 hgnet_tiny hrnet_w18_small iformer_t inception_next_atto lcnetv2_small
    mambaout_femto mobilevit_xxs mobilevitv2_050 efficientvit_b0 nextvit_small nf_regnet_b0
    nf_resnet26 eca_nfnet_l0 poolformer_s12 poolformerv2_s12 caformer_s18 pvt_v2_b0 regnetx_002
    regnety_002 repghostnet_050 repvit_m0_9 resnest14d resnet10t resnet14t seresnet18 ecaresnet26t
    resnetblur18 gluon_resnet18_v1b resnetv2_18 resnetv2_18d rdnet_tiny selecsls42 semnasnet_050
    legacy_seresnet18 skresnet18 shvit_s1 starnet_s1 swiftformer_xs tresnet_m res2net50_14w_8s
    xcit_nano_12_p16_224 vovnet39a ese_vovnet19b_slim efficientnet_es davit_tiny csatv2 repvgg_a1
    resnext26ts seresnext26d_32x4d tiny_vit_5m_224
"""
# Networks that are built for a size of image.
FIXED_SIZE = """
    cait_xxs24_224 convit_tiny crossvit_tiny_240 deit_tiny_patch16_224
    deit_tiny_distilled_patch16_224 deit3_small_patch16_224 efficientformer_l1 gcvit_xxtiny
    levit_128s maxvit_pico_rw_256 maxvit_rmlp_pico_rw_256 coatnet_pico_rw_224 mixer_s32_224
    gmixer_12_224 resmlp_12_224 gmlp_ti16_224 mvitv2_tiny pit_ti_224 pit_ti_distilled_224
    sequencer2d_s swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swin_s3_tiny_224
    tnt_s_legacy_patch16_224 twins_pcpvt_small visformer_tiny volo_d1_224 vit_tiny_patch16_224
    vit_pwee_patch16_reg1_gap_256 vit_little_patch16_reg4_gap_256 flexivit_small
    vit_relpos_small_patch16_224 vit_relpos_base_patch32_plus_rpn_256 eva02_tiny_patch14_224
    naflexvit_base_patch16_gap hiera_tiny_224 nest_tiny vitamin_small_224 samvit_base_patch16_224
    beit_base_patch16_224 coat_lite_tiny
"""
SIZES = {
    "crossvit_tiny_240": 240,
    "efficientformer_l1": 224,
    "eva02_tiny_patch14_224": 56,
    "gcvit_xxtiny": 224,
    "hiera_tiny_224": 224,
    "nest_tiny": 224,
}
# Deep networks of one block many times: fewer of them.
SETTINGS: dict[str, dict[str, object]] = {
    "beit_base_patch16_224": {"depth": 2},
    "cait_xxs24_224": {"depth": 4},
    "deit3_small_patch16_224": {"depth": 3},
    "flexivit_small": {"depth": 3},
    "naflexvit_base_patch16_gap": {"depth": 2},
    "samvit_base_patch16_224": {"depth": 2, "global_attn_indexes": (1,)},
    "vit_relpos_base_patch32_plus_rpn_256": {"depth": 2},
    "vit_relpos_small_patch16_224": {"depth": 3},
}


def _make(name: str, **settings: object) -> nn.Module:
    import_torchvision()
    import timm

    return timm.create_model(name, num_classes=CLASSES, **settings)


def _describe(name: str, is_sized: bool) -> Network:
    size = SIZES.get(name, 64)
    settings = dict(SETTINGS.get(name, {}))
    if is_sized and size not in (224, 240):  # their own sizes
        settings["img_size"] = size
    given = Given((BATCH, 3, size, size))
    return Network(f"timm/{name}", partial(_make, name, **settings), (given,))


NETWORKS = [
    *(_describe(name, False) for name in ANY_SIZE.split()),
    *(_describe(name, True) for name in FIXED_SIZE.split()),
]
