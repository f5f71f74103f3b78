"""Probabilities of a model for a split, always in the same batches, so that bits repeat."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seedless.train.loss import Loss
from seedless.train.problem import Split


@torch.no_grad()
def predict(model: nn.Module, split: Split, loss: Loss, batch: int) -> NDArray[np.float64]:
    """Return (n, K) probabilities, computed on the CPU in float64 from the model's logits.

    The model is put into evaluation mode, and back into the mode it was in.
    """
    was_training = model.training
    model.eval()
    try:
        logits = torch.cat([model(samples) for samples in torch.split(split.samples, batch)])
    finally:
        model.train(was_training)
    return loss.probabilities(logits.cpu()).numpy()
