"""A callback for the Trainer of Transformers."""

import math
from typing import Any

import torch
from torch import nn

from seedless.core.files import AnyPath
from seedless.integrations.step_writer import StepWriter, explain_missing

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ImportError as error:
    raise ImportError(explain_missing("transformers")) from error


class TransformersRecorder(TrainerCallback):
    """Records a line for each optimizer step of `Trainer.train`, as `seedless.record` does.

    A training that resumes (`resume_from_checkpoint=`) goes on with the trail in the folder. The
    step is the Trainer's `global_step`. Loss and batch are what the model computes and is given; a
    loss that the Trainer computes outside the model is not in the trail.

    Args:
        folder: where the trail is written.
        config: settings to record with it: anything.

    Example:
        >>> trainer = Trainer(model, arguments, callbacks=[TransformersRecorder("runs/a")])
    """

    def __init__(self, folder: AnyPath, config: Any = None) -> None:
        self._writer = StepWriter(folder, config)
        self._hook: Any = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Open the trail, and observe the model: callbacks are given neither batch nor loss."""
        model, optimizer = parts["model"], parts["optimizer"]
        scaler = getattr(optimizer, "scaler", None)
        self.close()
        self._writer.begin(model, optimizer, scheduler=parts["lr_scheduler"], scaler=scaler)
        self._hook = model.register_forward_hook(self._observe, with_kwargs=True)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Write the line of a step. Its epoch counts from 0; the Trainer's is a fraction."""
        self._writer.write(state.global_step, math.ceil(state.epoch or 1) - 1)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Close the trail."""
        self.close()

    def close(self) -> None:
        """Close the trail. Call it if a training raised and another one shall use the folder."""
        self._writer.close()
        if self._hook is not None:
            self._hook.remove()
        self._hook = None

    def _observe(self, model: nn.Module, inputs: Any, named: Any, output: Any) -> None:
        if model.training and torch.is_grad_enabled():
            self._writer.add(output, [inputs, named])
