"""Outputs with names: a model that returns a dict, as a model with several tasks does."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from torch import Tensor

from seedless.portable.batch.step_computation import Forward, Loss


def pass_names_on(forward: Callable[..., Any], loss_of: Loss) -> tuple[Forward, Loss]:
    """Return a forward pass that returns the values of a dict, and a loss that gets the dict."""
    kinds: list[type] = []  # of the last outputs; empty where they have no names
    names: list[Any] = []

    @wraps(forward, assigned=(), updated=())
    def run(*rows: Tensor) -> Tensor | Sequence[Tensor]:
        outputs = forward(*rows)
        is_named = isinstance(outputs, Mapping)
        kinds[:] = [type(outputs)] if is_named else []
        names[:] = list(outputs) if is_named else []
        return list(outputs.values()) if is_named else outputs

    @wraps(loss_of, assigned=(), updated=())
    def compute_loss(outputs: Tensor | Sequence[Tensor], *batch: Tensor) -> Tensor:
        if not kinds:
            return loss_of(outputs, *batch)
        listed = [outputs] if isinstance(outputs, Tensor) else outputs
        named = dict(zip(names, listed, strict=True))
        return loss_of(named if kinds[0] is dict else kinds[0](**named), *batch)

    return run, compute_loss
