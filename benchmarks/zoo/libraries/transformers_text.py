"""Language models of Transformers, built from small configurations."""

from __future__ import annotations

from typing import Any

from benchmarks.zoo.libraries.transformers_configs import (
    BOTH,
    SEQ2SEQ,
    SIZE,
    TEXT,
    TOKENS,
    WORDS,
    describe,
)

DECODER = SIZE | {
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "head_dim": 8,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
GPT: dict[str, Any] = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4}
T5: dict[str, Any] = {
    "vocab_size": WORDS,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
}
STATES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": WORDS}


ENCODERS = """
    Bert Roberta Electra Albert DistilBert DebertaV2 Deberta MPNet RoFormer ConvBert MobileBert
    Camembert XLMRoberta RobertaPreLayerNorm MegatronBert RemBert Ernie Nystromformer
    BigBird FNet SqueezeBert ModernBert Esm Longformer
    Mra Yoso
"""
ENCODER_SETTINGS: dict[str, dict[str, Any]] = {
    "Albert": {"embedding_size": 16},
    "BigBird": {"attention_type": "original_full"},
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "Electra": {"embedding_size": 16},
    "Esm": {"mask_token_id": 3, "position_embedding_type": "rotary"},
    "Longformer": {"attention_window": 4},
    "MobileBert": {"embedding_size": 16, "intra_bottleneck_size": 32, "true_hidden_size": 32},
    "Nystromformer": {"num_landmarks": 4, "segment_means_seq_len": 12, "conv_kernel_size": 3},
    "SqueezeBert": {"embedding_size": 32},
    "RemBert": {"input_embedding_size": 16, "output_embedding_size": 16},
}
DECODERS = """
    Llama Mistral Qwen2 Qwen3 Gemma Gemma2 Phi Phi3 Olmo Olmo2 StableLm Starcoder2 Cohere Granite
    Glm Helium Nemotron SmolLM3 Persimmon Apertus Exaone4 Arcee Cohere2 Glm4 SeedOss
    Qwen2Moe Qwen3Moe Mixtral Olmoe GraniteMoe GptOss Phimoe
"""
DECODER_SETTINGS: dict[str, dict[str, Any]] = dict.fromkeys(
    ("Qwen2Moe", "Qwen3Moe", "Mixtral", "Olmoe", "GptOss", "Phimoe"), EXPERTS
)
DECODER_SETTINGS["Qwen2Moe"] = EXPERTS | {"shared_expert_intermediate_size": 16}
CLASSES = {
    "FNet": "FNetForSequenceClassification",
    "ModernBert": "ModernBertForSequenceClassification",
}
POSITIONS = {"max_position_embeddings": 64}
NETWORKS = [
    *(
        describe(
            CLASSES.get(name, f"{name}ForSequenceClassification"),
            name,
            {"input_ids": TOKENS} if name == "FNet" else TEXT,
            **(SIZE | POSITIONS | {"num_labels": 5} | ENCODER_SETTINGS.get(name, {})),
        )
        for name in ENCODERS.split()
    ),
    describe(
        "XLNetForSequenceClassification",
        "XLNet",
        TEXT,
        vocab_size=WORDS,
        d_model=32,
        n_layer=2,
        n_head=4,
        d_inner=64,
        num_labels=5,
    ),
    describe(
        "FunnelForSequenceClassification",
        "Funnel",
        TEXT,
        vocab_size=WORDS,
        d_model=32,
        n_head=4,
        d_head=8,
        d_inner=64,
        block_sizes=[1, 1],
        num_labels=5,
    ),
    *(
        describe(f"{name}ForCausalLM", name, TEXT, **(DECODER | DECODER_SETTINGS.get(name, {})))
        for name in DECODERS.split()
    ),
    describe("GPT2LMHeadModel", "GPT2", TEXT, **GPT, n_positions=64),
    describe(
        "GPTNeoForCausalLM",
        "GPTNeo",
        TEXT,
        vocab_size=WORDS,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=64,
    ),
    describe("GPTNeoXForCausalLM", "GPTNeoX", TEXT, **SIZE, max_position_embeddings=64),
    describe("GPTJForCausalLM", "GPTJ", TEXT, **GPT, rotary_dim=4, n_positions=64),
    describe("GPTBigCodeForCausalLM", "GPTBigCode", TEXT, **GPT, n_positions=64),
    describe("CodeGenForCausalLM", "CodeGen", TEXT, **GPT, rotary_dim=4, n_positions=64),
    describe(
        "BloomForCausalLM", "Bloom", TEXT, vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=4
    ),
    describe(
        "OPTForCausalLM",
        "OPT",
        TEXT,
        **SIZE,
        ffn_dim=64,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
    ),
    describe("FalconForCausalLM", "Falcon", TEXT, **SIZE),
    describe(
        "MptForCausalLM",
        "Mpt",
        TEXT,
        vocab_size=WORDS,
        d_model=32,
        n_layers=2,
        n_heads=4,
        max_seq_len=64,
    ),
    describe("MambaForCausalLM", "Mamba", {"input_ids": TOKENS}, **STATES, state_size=4),
    describe(
        "Mamba2ForCausalLM",
        "Mamba2",
        {"input_ids": TOKENS},
        **STATES,
        state_size=4,
        num_heads=8,
        head_dim=8,
        n_groups=2,
        chunk_size=4,
    ),
    describe("RwkvForCausalLM", "Rwkv", {"input_ids": TOKENS}, **STATES, attention_hidden_size=32),
    describe("CTRLLMHeadModel", "CTRL", TEXT, **GPT, dff=64, n_positions=64),
    describe(
        "XGLMForCausalLM",
        "XGLM",
        TEXT,
        vocab_size=WORDS,
        d_model=32,
        num_layers=2,
        attention_heads=4,
        ffn_dim=64,
        max_position_embeddings=64,
    ),
    describe("BioGptForCausalLM", "BioGpt", TEXT, **SIZE, max_position_embeddings=64),
    describe("T5ForConditionalGeneration", "T5", BOTH, **T5),
    describe("MT5ForConditionalGeneration", "MT5", BOTH, **T5),
    describe(
        "SwitchTransformersForConditionalGeneration",
        "SwitchTransformers",
        BOTH,
        **T5,
        num_experts=4,
        expert_capacity=8,
        num_sparse_encoder_layers=1,
        num_sparse_decoder_layers=1,
        router_jitter_noise=0.0,
    ),
    describe("BartForConditionalGeneration", "Bart", BOTH, **SEQ2SEQ),
    describe("PegasusForConditionalGeneration", "Pegasus", BOTH, **SEQ2SEQ),
    describe("MarianMTModel", "Marian", BOTH, **SEQ2SEQ, decoder_start_token_id=0),
    describe("BlenderbotForConditionalGeneration", "Blenderbot", BOTH, **SEQ2SEQ),
    describe("M2M100ForConditionalGeneration", "M2M100", BOTH, **SEQ2SEQ),
]
