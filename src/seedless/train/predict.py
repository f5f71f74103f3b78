"""Probabilities of a model for a split, always in the same batches, so that bits repeat."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.config import Config
from seedless.train.loss import Loss
from seedless.train.precision import cast_as
from seedless.train.problem import Split


@torch.no_grad()
def predict(model: nn.Module, split: Split, loss: Loss, config: Config) -> NDArray[np.float64]:
    """Return (n, K) probabilities, computed on the CPU in float64 from the model's logits.

    The model is put into evaluation mode, and back into the mode it was in.
    """
    was_training = model.training
    model.eval()
    parts = torch.split(split.samples, config.train.evaluate_batch)
    device = split.labels.device
    try:
        with cast_as(config.execution.precision, device):
            logits = [model(as_input(part, device)) for part in parts]
    finally:
        model.train(was_training)
    return loss.probabilities(torch.cat(logits).cpu()).numpy()


def as_input(samples: Tensor, device: torch.device) -> Tensor:
    """Return samples as the model receives them: on the device, float32 or whole numbers."""
    there = samples.to(device)
    return there.float() if there.is_floating_point() else there
