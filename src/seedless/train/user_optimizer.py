"""A user's optimizer: checked when it is made, and after each step.

A checkpoint holds the tensors of an optimizer's state and nothing else of it. So an optimizer that
keeps other values there, counts in an attribute of its own, or changes the options of its parameter
groups, could not be resumed.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import ConfigError

# The value of train.optimizer, train.decay and loss.name where a user's function takes their place.
USER_FUNCTION = "given"


def make_user_optimizer(
    make: Callable[[nn.Module], torch.optim.Optimizer], model: nn.Module
) -> torch.optim.Optimizer:
    """Return the optimizer that the user's function makes for a model."""
    try:
        optimizer = make(model)
    except Exception as error:  # the function is not ours: whatever it raises is the message
        raise ConfigError(
            f"optimizer(model) failed: {type(error).__name__}: {error}. It is called with the "
            "model: optimizer=lambda model: torch.optim.AdamW(model.parameters(), lr=1e-3)"
        ) from error
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ConfigError(
            f"expected optimizer(model) to return a torch.optim.Optimizer, got "
            f"{type(optimizer).__name__}; for example optimizer=lambda model: "
            "torch.optim.AdamW(model.parameters(), lr=1e-3)"
        )
    needed = [
        name
        for name, parameter in inspect.signature(optimizer.step).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if needed:
        raise ConfigError(
            f"{type(optimizer).__name__}.step needs {', '.join(needed)}; expected an optimizer "
            "that makes one step from the gradients, such as torch.optim.AdamW"
        )
    own = {id(parameter) for parameter in model.parameters()}
    if any(id(p) not in own for group in optimizer.param_groups for p in group["params"]):
        raise ConfigError("the optimizer updates a tensor that is no parameter of the model")
    if any("lr" not in group for group in optimizer.param_groups):
        raise ConfigError("expected every parameter group of the optimizer to have a rate, 'lr'")
    return optimizer


def read_rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    """Return the learning rate of each parameter group."""
    return tuple(float(group["lr"]) for group in optimizer.param_groups)


def describe_groups(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Return the options of each parameter group, but for its parameters and learning rate."""
    return [
        {name: value for name, value in group.items() if name not in ("params", "lr")}
        for group in optimizer.param_groups
    ]


def read_numbers(optimizer: torch.optim.Optimizer) -> dict[str, int | float]:
    """Return the numbers among the attributes of an optimizer, such as a count of its steps."""
    return {
        name: value
        for name, value in vars(optimizer).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def check_user_step(
    optimizer: torch.optim.Optimizer,
    groups: list[dict[str, Any]],
    numbers: dict[str, int | float],
) -> None:
    """Refuse an optimizer that keeps something which a checkpoint does not hold.

    Args:
        optimizer: the user's, after a step.
        groups: its `describe_groups` when it was made.
        numbers: its `read_numbers` when it was made.
    """
    kind = type(optimizer).__name__
    for name, number in read_numbers(optimizer).items():
        if name not in numbers or number != numbers[name]:
            raise ConfigError(
                f"{kind} changed its attribute {name!r} during a step, which a checkpoint does not "
                "hold: keep it as a tensor in optimizer.state"
            )
    for before, now in zip(groups, describe_groups(optimizer), strict=True):
        for name, value in now.items():
            if before.get(name) is not value and before.get(name) != value:
                raise ConfigError(
                    f"{kind} changed {name!r} of its parameter group during a step, which a "
                    "checkpoint does not hold: keep it as a tensor in optimizer.state"
                )
    for fields in optimizer.state.values():
        for name, value in fields.items():
            if value is not None and not isinstance(value, Tensor):
                raise ConfigError(
                    f"expected the state of {kind} to hold tensors, got {name!r} as "
                    f"{type(value).__name__}, which a checkpoint does not hold: keep numbers as "
                    "tensors, state['step'] = torch.tensor(0.0), as torch's own optimizers do"
                )
