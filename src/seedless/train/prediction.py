"""A model's outputs on a split, always in the same batches, so that their bits repeat."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.config import Config
from seedless.models.layers import Classifier
from seedless.train.arithmetic import autocast_for, compute_in
from seedless.train.loss import Loss
from seedless.train.process_group import TrainingGroup, join_tensors, take_turns
from seedless.train.training_problem import DataSplit


@dataclass(frozen=True, eq=False)
class Outputs:
    """Logits (n, K), and features (n, D), the head's inputs: None for models without a head."""

    logits: Tensor
    features: Tensor | None


def predict(
    model: nn.Module,
    split: DataSplit,
    loss: Loss,
    config: Config,
    group: TrainingGroup | None = None,
) -> NDArray[np.float64]:
    """Return probabilities (n, K), computed on the CPU in float64 from the model's logits.

    The processes of a group share the work, and each returns all probabilities.
    """
    outputs = compute_outputs(model, split, config, group=group)
    return loss.probabilities(outputs.logits).numpy()


@torch.no_grad()
def compute_outputs(
    model: nn.Module,
    split: DataSplit,
    config: Config,
    *,
    with_features: bool = False,
    group: TrainingGroup | None = None,
) -> Outputs:
    """Return a model's outputs on the CPU; the features come from the same forward pass.

    The processes of a group take the batches in turns, and each returns all outputs.

    The model runs in evaluation mode and is returned to its previous mode.
    """
    was_training = model.training
    model.eval()
    parts = take_turns(torch.split(split.samples, config.train.evaluate_batch), group)
    device = split.labels.device
    features: list[Tensor] = []

    def collect_input(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        features.append(inputs[0].float().cpu())

    hook = None
    if with_features and isinstance(model, Classifier):
        hook = model.head.register_forward_pre_hook(collect_input)
    try:
        execution = config.execution
        with compute_in(execution.arithmetic), autocast_for(execution.precision, device):
            logits = [model(split.as_input(part)) for part in parts]
    finally:
        model.train(was_training)
        if hook is not None:
            hook.remove()
    logits, features = join_tensors(logits, group), join_tensors(features, group)
    return Outputs(torch.cat(logits).cpu(), torch.cat(features) if features else None)
