"""The optimizers.

All run in torch's fused form with the rate in a tensor, on CPU and GPU, eager or captured: one
form, so that how a step is launched never changes its bits.

Torch's own wrappers import its compiler, 1.5 s of every start, to tell it to keep out of an
optimizer. Nothing compiles an optimizer here, so they are passed by.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn

from seedless.core.config import TrainConfig
from seedless.core.errors import ConfigError
from seedless.core.registry import choose
from seedless.train.learning_rate import DECAYS

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


def make_optimizer(
    config: TrainConfig, parameters: Iterable[nn.Parameter], device: torch.device
) -> torch.optim.Optimizer:
    """Return the optimizer; its rate is a tensor that `set_learning_rate` fills."""
    make = choose("optimizer", config.optimizer, OPTIMIZERS)
    choose("decay", config.decay, dict.fromkeys(DECAYS))
    if config.momentum is not None and config.optimizer != "sgd":
        raise ConfigError(f"train.momentum belongs to sgd; leave it out of {config.optimizer}")
    options: dict[str, Any] = {"fused": True, "weight_decay": config.weight_decay}
    if config.optimizer == "sgd":
        options["momentum"] = config.momentum or 0.0
    else:
        options["capturable"] = device.type == "cuda"  # the fused kernel is the same either way
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not trained:
        raise ConfigError("the model has no parameter to train: requires_grad is off everywhere")
    rate = torch.tensor(config.rate, dtype=torch.float32, device=device)
    with _leave_compiler():
        optimizer = make(trained, lr=rate, **options)
    fill_state(optimizer)
    return optimizer


@contextmanager
def _leave_compiler() -> Iterator[None]:
    """Mark the one wrapped call of a new optimizer as known to the compiler, and unmark it after.

    A torch without that mark is left alone: it then imports what it imports.
    """
    call, mark = torch.optim.Optimizer.add_param_group, "__dynamo_disable"
    plain = getattr(call, "__wrapped__", call)
    if hasattr(plain, mark):
        yield
        return
    setattr(plain, mark, plain)
    try:
        yield
    finally:
        delattr(plain, mark)


def apply_step(optimizer: torch.optim.Optimizer) -> None:
    """Make the optimizer's step from the gradients that are there."""
    _find_step(type(optimizer).step)(optimizer)


@cache
def _find_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimizer's step with torch's hooks and without its call to the compiler."""
    plain = inspect.unwrap(step)
    hooked: Callable[..., Any] = torch.optim.Optimizer.profile_hook_step(torch.no_grad()(plain))
    return hooked


def fill_state(optimizer: torch.optim.Optimizer) -> None:
    """Give every parameter the zeros torch would give it at the first step.

    So the first step is like any other: a captured one can be repeated, and the state before it
    is whole.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            if isinstance(optimizer, torch.optim.SGD):
                if group["momentum"]:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
            else:
                state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
