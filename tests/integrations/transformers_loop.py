"""A training with Transformers that can be ended, resumed and disturbed."""

import pytest
import torch
from torch import nn

from tests.integrations.parts import EPOCHS, make_data, make_network

transformers = pytest.importorskip("transformers", reason="needs the extra `integrations`")
pytest.importorskip("accelerate", reason="needs the extra `integrations`")

from seedless.integrations import TransformersRecorder  # noqa: E402


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = make_network()

    def forward(self, inputs, labels):
        logits = self.network(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Samples(torch.utils.data.Dataset):
    def __init__(self, noise):
        self.inputs, self.labels = make_data().tensors
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
        num_train_epochs=EPOCHS,
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
