"""The learning rate of every step: cosine decay by epoch, linear warm-up by step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from seedless.core.config import TrainConfig
from seedless.core.errors import ConfigError
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


@dataclass(frozen=True, eq=False)
class UserRates:
    """The learning rates of a run with a user-defined optimizer or scheduler.

    Attributes:
        initial: the rate of each parameter group, as the optimizer was made.
        factor: the user's function of epoch and step, both counted from 0; None for constant rates.
    """

    initial: tuple[float, ...]
    factor: Callable[[int, int], float] | None = None

    @staticmethod
    def _call(factor: Callable[[int, int], float], epoch: int, step: int) -> Any:
        try:
            return factor(epoch, step)
        except Exception as error:  # the function is not ours: whatever it raises is the message
            raise ConfigError(
                f"scheduler(epoch, step) failed: {type(error).__name__}: {error}. It is called "
                "with two whole numbers, and returns a factor on the learning rates: "
                "scheduler=lambda epoch, step: 0.9**epoch"
            ) from error

    def rates_at(self, epoch: int, step: int) -> list[float]:
        """Return the rate of each parameter group at a step."""
        factor = 1.0 if self.factor is None else self._call(self.factor, epoch, step)
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            raise ConfigError(
                f"expected scheduler(epoch, step) to return a number, which multiplies the "
                f"optimizer's learning rates; got {type(factor).__name__} at epoch {epoch}, step "
                f"{step}"
            )
        if not 0 <= factor < math.inf:
            raise ConfigError(
                f"expected scheduler(epoch, step) to return a factor from 0, got {factor} at epoch "
                f"{epoch}, step {step}"
            )
        return [rate * factor for rate in self.initial]


def set_group_rates(optimizer: torch.optim.Optimizer, rates: Sequence[float]) -> None:
    """Set the rate of each parameter group for the next step."""
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of the next step, in the tensor of our optimizers or as a plain number."""
    set_group_rates(optimizer, [rate] * len(optimizer.param_groups))
