"""Networks of torch_ecg for electrocardiograms."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from torch import nn

from benchmarks.zoo.network import Given, Network

BACKBONES = """
    resnet_18 resnet_nature_comm_se resnetNS tresnetF multi_scopic mobilenet_v1 mobilenet_v2
    mobilenet_v3 xception_vanilla densenet_vanilla regnet_S vgg16 resnet_stanford
"""
CLASSES = ["normal", "AF", "PVC"]
SIGNAL = Given((2, 12, 1000))


def _make_crnn(backbone: str, attention: str = "none", recurrence: str = "none") -> nn.Module:
    from torch_ecg.model_configs import ECG_CRNN_CONFIG
    from torch_ecg.models import ECG_CRNN

    config = copy.deepcopy(ECG_CRNN_CONFIG)
    config.cnn.name, config.attn.name, config.rnn.name = backbone, attention, recurrence
    net: nn.Module = ECG_CRNN(CLASSES, 12, config)
    return net


def _make(network: str, configuration: str, *arguments: Any) -> nn.Module:
    import torch_ecg.model_configs
    import torch_ecg.models

    config = copy.deepcopy(getattr(torch_ecg.model_configs, configuration))
    net: nn.Module = getattr(torch_ecg.models, network)(*arguments, config)
    return net


NETWORKS = [
    *(
        Network(f"torch_ecg/{name}", partial(_make_crnn, name), (SIGNAL,))
        for name in BACKBONES.split()
    ),
    Network("torch_ecg/resnetNS-lstm", partial(_make_crnn, "resnetNS", "none", "lstm"), (SIGNAL,)),
    *(
        Network(f"torch_ecg/resnetNS-{name}", partial(_make_crnn, "resnetNS", name), (SIGNAL,))
        for name in ("se", "nl", "gc", "sa", "transformer")
    ),
    Network(
        "torch_ecg/seq_lab_net",
        partial(_make, "ECG_SEQ_LAB_NET", "ECG_SEQ_LAB_NET_CONFIG", CLASSES, 12),
        (SIGNAL,),
    ),
    Network(
        "torch_ecg/unet",
        partial(_make, "ECG_UNET", "ECG_UNET_VANILLA_CONFIG", CLASSES, 12),
        (SIGNAL,),
    ),
    Network(
        "torch_ecg/subtract_unet",
        partial(_make, "ECG_SUBTRACT_UNET", "ECG_SUBTRACT_UNET_CONFIG", CLASSES, 12),
        (SIGNAL,),
    ),
    Network(
        "torch_ecg/rr_lstm",
        partial(_make, "RR_LSTM", "RR_AF_VANILLA_CONFIG", CLASSES),
        (Given((9, 2, 1)),),
        samples_axis=1,
    ),
]
