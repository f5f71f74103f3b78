"""The optimizers, in torch's fused form.

Every run uses the fused form with the learning rate in a tensor, on CPU and GPU, in eager mode and
in CUDA graphs: one form, so that the way a step is launched never changes its bits.

Torch wraps optimizers in functions that import its compiler (1.5 s at every start) only to exclude
the optimizer from compilation. Nothing compiles an optimizer here, so these wrappers are bypassed.
"""

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
    """Return the optimizer of a configuration over the parameters that require a gradient.

    Its learning rate is a float32 tensor on the device, which `set_learning_rate` fills.
    """
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
    with _without_compiler_import():
        optimizer = make(trained, lr=rate, **options)
    fill_state(optimizer)
    return optimizer


@contextmanager
def _without_compiler_import() -> Iterator[None]:
    """Keep `add_param_group`, which a new optimizer calls, from importing torch's compiler.

    Its wrapper imports the compiler unless the function carries this attribute. A version of torch
    that does not look for the attribute imports the compiler as before.
    """
    call, attribute = torch.optim.Optimizer.add_param_group, "__dynamo_disable"
    function = getattr(call, "__wrapped__", call)
    if hasattr(function, attribute):
        yield
        return
    setattr(function, attribute, function)
    try:
        yield
    finally:
        delattr(function, attribute)


def apply_step(optimizer: torch.optim.Optimizer) -> None:
    """Update the parameters from their gradients."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        optimizer.step()
        return
    _unwrap_step(type(optimizer).step)(optimizer)


@cache
def _unwrap_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimizer's step with torch's hooks and without the import of its compiler."""
    function = torch.no_grad()(inspect.unwrap(step))
    hooked: Callable[..., Any] = torch.optim.Optimizer.profile_hook_step(function)
    return hooked


def fill_state(optimizer: torch.optim.Optimizer) -> None:
    """Create the state of every parameter, the zeros that torch would create at the first step.

    Then the first step is like every other: it can be captured in a graph, and a checkpoint before
    it holds the complete state.
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
