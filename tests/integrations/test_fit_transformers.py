"""`fit` trains a classifier of Transformers' with attention masks, and with dropout on."""

import pytest
import torch
import torch.nn.functional as F

import seedless
from seedless.core.errors import NumericsError
from tests.runs.user_problems import SETTINGS, Sentences

transformers = pytest.importorskip("transformers")

GIVEN = {**SETTINGS, "init": {"basis": "given"}}


def make_bert():
    """A BERT of two layers with the weights of a seed, whose dropout draws from a generator."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=11,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        num_labels=3,
        attn_implementation="eager",
    )
    return transformers.BertForSequenceClassification(config)


def make_converted():
    return seedless.convert(make_bert())


def pad(samples):
    """Return the model's arguments by name, and the classes."""
    words = [torch.from_numpy(sample["words"]) for sample in samples]
    arguments = {
        "input_ids": torch.nn.utils.rnn.pad_sequence(words, batch_first=True),
        "attention_mask": torch.nn.utils.rnn.pad_sequence(
            [torch.ones_like(part) for part in words], batch_first=True
        ),
    }
    return arguments, torch.tensor([sample["kind"] for sample in samples])


def cross_entropy(outputs, targets):
    return F.cross_entropy(outputs.logits, targets, reduction="none")


ARGUMENTS = {
    "train": Sentences(range(24)),
    "val": Sentences(range(24, 32)),
    "loss": cross_entropy,
    "collate": pad,
}


def test_a_classifier_with_masks_and_dropout_is_verified(tmp_path):
    run = seedless.fit(make_converted, **ARGUMENTS, workers=2, config=GIVEN, out=tmp_path / "run")
    assert run.claims["promise"]["same_bits"]
    verdict = seedless.verify(run, model=make_converted, **ARGUMENTS)
    assert verdict.outcome == "identical", verdict.details


def test_negative_control_its_own_dropout_is_refused(tmp_path):
    with pytest.raises(NumericsError, match="generator"):
        seedless.fit(make_bert, **ARGUMENTS, config=GIVEN, out=tmp_path / "run")
