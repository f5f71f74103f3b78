"""Transformers: what its runs repeat, and what a resume from its own checkpoints restores."""

import pytest
import torch
from torch import nn

import seedless
from seedless.proof.loop_lines import read_loop
from tests.integrations.resumed import stop_and_resume

transformers = pytest.importorskip("transformers", reason="needs the extra `integrations`")
pytest.importorskip("accelerate", reason="needs the extra `integrations`")

from seedless.integrations import TransformersRecorder  # noqa: E402

BATCHES = 6  # of an epoch


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    def forward(self, inputs, labels):
        logits = self.network(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Samples(torch.utils.data.Dataset):
    def __init__(self, noise):
        generator = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(24, 4, generator=generator)
        self.labels = torch.randint(2, (24,), generator=generator)
        self.noise = noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        noise = self.noise * torch.randn(4) if self.noise else 0
        return {"inputs": self.inputs[place] + noise, "labels": self.labels[place]}


class Interruption(transformers.TrainerCallback):
    """Sets another seed before one step, and stops the training after another."""

    def __init__(self, reseed_at, stop):
        self.reseed_at, self.stop = reseed_at, stop

    def on_step_begin(self, args, state, control, **parts):
        if state.global_step + 1 == self.reseed_at:
            torch.manual_seed(99)

    def on_step_end(self, args, state, control, **parts):
        control.should_training_stop |= state.global_step == self.stop


def train(folder, *, noise=0.0, reseed_at=0, stop=0, save=6, resume=False, **more):
    """Train three epochs of six batches, or as far as `stop`; save after every `save` steps."""
    transformers.set_seed(0)
    arguments = transformers.TrainingArguments(
        str(folder),
        num_train_epochs=3,
        per_device_train_batch_size=4,
        save_steps=save,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        **more,
    )
    trainer = transformers.Trainer(
        Classifier(),
        arguments,
        train_dataset=Samples(noise),
        eval_dataset=Samples(noise),
        callbacks=[TransformersRecorder(folder), Interruption(reseed_at, stop)],
    )
    trainer.train(resume_from_checkpoint=str(folder / f"checkpoint-{save}") if resume else None)
    return folder


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return train(tmp_path_factory.mktemp("unbroken"))


def test_two_runs_are_identical(unbroken, tmp_path):
    assert seedless.diff(unbroken, train(tmp_path)).identical
    lines = read_loop(unbroken)[0][1:]
    assert [line["step"] for line in lines] == list(range(1, 19))
    assert [line["epoch"] for line in lines] == 6 * [0] + 6 * [1] + 6 * [2]
    last = lines[-1]
    assert last["rate"] == {"optimizer": [0.0, 0.0]}  # one group has weight decay
    assert isinstance(last["loss"], float)
    assert {"python", "numpy", "torch"} <= {*last["generators"]}
    assert {"model/network.0.weight", "optimizer/exp_avg/network.0.weight"} <= {*last["state"]}


def test_another_seed_is_found_at_its_step(unbroken, tmp_path):
    found = seedless.diff(unbroken, train(tmp_path, reseed_at=9))
    assert (found.identical, found.step, found.epoch) == (False, 9, 1)
    assert "batch" not in found.names


def test_accumulated_gradients_give_a_line_for_each_step(tmp_path):
    lines = read_loop(train(tmp_path, gradient_accumulation_steps=4))[0][1:]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [len(line["loss"]) for line in lines] == [4, 2, 4, 2, 4, 2]


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
