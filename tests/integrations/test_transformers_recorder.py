"""Transformers: what a resume from its checkpoints restores, and what an exception leaves."""

import pytest
from torch import nn

import seedless
from seedless.proof.loop_lines import read_loop
from tests.integrations.parts import BATCHES
from tests.integrations.resumed import stop_and_resume

transformers = pytest.importorskip("transformers", reason="needs the extra `integrations`")
pytest.importorskip("accelerate", reason="needs the extra `integrations`")
from seedless.integrations import TransformersRecorder  # noqa: E402
from tests.integrations.transformers_loop import Classifier, Samples, train  # noqa: E402


@pytest.fixture(scope="module")
def unbroken(train_unbroken):
    return train_unbroken("transformers")


def test_batches_of_an_evaluation_are_not_those_of_a_step(unbroken, tmp_path):
    lines = read_loop(train(tmp_path, eval_strategy="epoch"))[0][1:]
    assert all(isinstance(line["loss"], float) for line in lines)
    found = seedless.diff(unbroken, tmp_path)  # the loader of the evaluation draws a seed
    assert (found.step, "batch" in found.names) == (BATCHES + 1, False)


@pytest.mark.parametrize("save", [BATCHES, BATCHES - 2])
def test_a_resume_is_exact_with_dropout_and_shuffling(unbroken, save, tmp_path):
    """The generators are saved, and the order is a function of seed and epoch."""
    assert stop_and_resume(train, tmp_path, save=save) == []
    assert seedless.diff(unbroken, tmp_path).identical


def test_a_resume_within_an_epoch_is_not_exact_if_samples_are_drawn(tmp_path):
    """The next batch is fetched before the step, and so before the generators are saved."""
    whole = train(tmp_path / "whole", noise=0.1)
    (warning,) = stop_and_resume(train, tmp_path / "parts", save=4, noise=0.1)
    assert warning.startswith("step 5 differs")
    found = seedless.diff(whole, tmp_path / "parts")
    assert (found.identical, found.step) == (False, 5)
    assert "batch" in found.names


def test_a_second_training_takes_over_after_an_exception(tmp_path):
    class Broken(Classifier):
        def forward(self, inputs, labels):
            raise OSError("no data")

    model = Broken()
    arguments = transformers.TrainingArguments(
        str(tmp_path), use_cpu=True, report_to=[], disable_tqdm=True, remove_unused_columns=False
    )
    recorder = TransformersRecorder(tmp_path)
    for _ in range(2):  # an open trail would be refused the second time
        trainer = transformers.Trainer(
            model, arguments, train_dataset=Samples(0.0), callbacks=[recorder]
        )
        with pytest.raises(OSError, match="no data"):
            trainer.train()
    recorder.close()
    assert not model._forward_hooks
    seedless.record(tmp_path, nn.Linear(1, 1)).close()
