"""Small configurations for networks of Transformers, and how a network is built from one."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from benchmarks.zoo.libraries.torchvision_import import import_torchvision
from benchmarks.zoo.network import Given, Network

WORDS, LENGTH = 64, 12
TOKENS = Given((2, LENGTH), below=WORDS - 4)
MASK = Given((2, LENGTH), ones=True)
TEXT = {"input_ids": TOKENS, "attention_mask": MASK}
BOTH = {"input_ids": TOKENS, "decoder_input_ids": TOKENS}
SIZE: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "pad_token_id": 0,
}
SEQ2SEQ: dict[str, Any] = {
    "vocab_size": WORDS,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}


def _make(model: str, configuration: str, settings: dict[str, Any]) -> nn.Module:
    import_torchvision()
    import transformers

    config = getattr(transformers, configuration)(**settings)
    net: nn.Module = getattr(transformers, model)(config)
    return net


def describe(model: str, configuration: str, given: Any, **settings: Any) -> Network:
    """Return the network of a class and of its configuration's class with these settings."""
    make = partial(_make, model, f"{configuration}Config", settings)
    return Network(f"transformers/{model}", make, (), given)
