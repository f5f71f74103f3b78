"""The learning rate of every step: cosine decay by epoch, linear warm-up by step."""

from functools import lru_cache

import numpy as np
import torch

from seedless.core.config import TrainConfig
from seedless.numerics.correct_rounding import rounded_cosines

DECAYS = ("cosine", "none")


def learning_rate_at(config: TrainConfig, epoch: int, step: int) -> float:
    """Return the learning rate of a step; epochs and steps count from 0.

    rate x (1 + cos(pi epoch / epochs)) / 2 x min(1, (step + 1) / warmup_steps): cosine annealing
    without restarts (Loshchilov and Hutter, "SGDR", ICLR 2017) by epoch, with a linear warm-up by
    step. The cosine is correctly rounded, so that it does not depend on the math library.
    """
    fraction = _cosine(epoch, config.epochs) if config.decay == "cosine" else 1.0
    if step < config.warmup_steps:
        fraction *= (step + 1) / config.warmup_steps
    return config.rate * fraction


@lru_cache(maxsize=4096)
def _cosine(epoch: int, epochs: int) -> float:
    """Return (1 + cos(pi epoch / epochs)) / 2."""
    return (1.0 + float(rounded_cosines(np.array([epoch]), epochs)[0])) / 2


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of the next step, in the tensor of our optimizers or as a plain number."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
