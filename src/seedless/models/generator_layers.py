"""Torch layers that draw from torch's generator: found by their class, without a forward pass."""

from typing import Any

from torch import nn

from seedless.core.errors import NumericsError
from seedless.models.call_hook_mark import has_call_hooks
from seedless.models.converted_layers import REPLACEMENTS

_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_MAX_NAMED = 3  # layers that a message names


def list_generator_layers(model: nn.Module) -> list[str]:
    """Return the layers that will draw in training mode, such as "2: Dropout(p=0.5)".

    A layer that the model's own ``train`` keeps in evaluation mode does not draw, nor does one in a
    model, or a part of one, that `convert` has changed.

    >>> list_generator_layers(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Dropout(0.0)))
    ['1: Dropout(p=0.5)']
    """
    converted = {
        inner for module in model.modules() if has_call_hooks(module) for inner in module.modules()
    }
    modes = {module: module.training for module in model.modules()}
    model.train()
    found = [
        f"{name or 'the model'}: {type(module).__name__}(p={rate:g})"
        for name, module in model.named_modules()
        if module.training and module not in converted and (rate := _read_rate(module)) > 0
    ]
    for module, mode in modes.items():
        module.training = mode
    return found


def refuse_generator_layers(model: nn.Module) -> None:
    """Raise NumericsError for a model that would draw from torch's generator, before it trains."""
    found = list_generator_layers(model)
    if not found:
        return
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    raise NumericsError(
        f"expected a model that uses no global generator, but {', '.join(found[:_MAX_NAMED])}"
        f"{more} will draw from torch's: call model = seedless.convert(model) first, or use "
        'seedless.Dropout. (config={"train": {"guard": "report"}} trains it as it is, without the '
        "promise of the same bits.)"
    )


def _read_rate(module: nn.Module) -> float:
    """Return the rate at which a torch layer drops in training mode; 0 for all others."""
    if type(module) in REPLACEMENTS:
        rate: Any = module.p
        return float(rate)
    if isinstance(module, nn.MultiheadAttention):
        return float(module.dropout)
    if isinstance(module, _RECURRENT) and module.num_layers > 1:
        return float(module.dropout)
    return 0.0
