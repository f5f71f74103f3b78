"""A user's loss: any function of the model's outputs and the targets, whatever their structure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import ConfigError


@dataclass(frozen=True, eq=False)
class UserLoss:
    """A user-defined loss, called with the model's outputs and a batch's targets.

    Attributes:
        function: (outputs, targets) -> one loss for the batch, or one for each sample, (B,).
    """

    function: Callable[[Any, Any], Tensor]

    def __call__(self, model: nn.Module, inputs: Any, targets: Any) -> Tensor:
        """Return the loss of a batch, of shape () or (B,)."""
        loss = check_loss(self.function(call_model(model, inputs), targets))
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise ConfigError(
                "loss(outputs, targets) has no gradient: compute it from the outputs by operations "
                "that have one, without argmax, comparisons, .detach() and .item(), and leave some "
                "parameters of the model trainable"
            )
        return loss


def call_model(model: nn.Module, inputs: Any) -> Any:
    """Return the outputs; a tuple or list of inputs is several arguments, a dict named ones."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, tuple | list):
        return model(*inputs)
    return model(inputs)


def show(value: Any) -> str:
    """Return the structure of a batch in words.

    >>> show({"ids": torch.zeros(2, 5, dtype=torch.int64), "more": [torch.zeros(2)]})
    '{ids: int64 (2, 5), more: [float32 (2,)]}'
    """
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {show(item)}" for name, item in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(show, value)) + "]"
    return type(value).__name__


def check_loss(loss: Any) -> Tensor:
    """Return what a loss function returned; refuse what is no loss."""
    if not isinstance(loss, Tensor) or not loss.is_floating_point() or loss.ndim > 1:
        found = type(loss).__name__
        if isinstance(loss, Tensor):
            found = f"{loss.dtype} of shape {tuple(loss.shape)}"
        raise ConfigError(
            "expected loss(outputs, targets) to return one loss for the batch, or one for each "
            f"sample, shape () or (B,), got {found}; average over the other axes"
        )
    return loss.float() if loss.dtype != torch.float64 else loss


def spread_loss(loss: Tensor, samples: int) -> Tensor:
    """Return the loss of each sample (B,); one loss for the whole batch counts for each of them."""
    if loss.ndim and len(loss) != samples:
        raise ConfigError(
            f"expected loss(outputs, targets) to return one loss for each of the {samples} "
            f"samples of a batch, or a single one, got {len(loss)}"
        )
    return loss if loss.ndim else loss.expand(samples)
