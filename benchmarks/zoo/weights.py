"""Weights from a counter, and dropout switched off: a start that is the same on every machine."""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from seedless.numerics.counter_random import draw_uniform

TABLE_LENGTH = 1_048_573  # a prime, so that no two rows of a weight are equal
BIAS_SCALE = 0.1


@lru_cache(maxsize=1)
def _make_table() -> Tensor:
    """Return uniform numbers in (-1, 1), float64."""
    return torch.from_numpy(draw_uniform(0, "zoo", TABLE_LENGTH)) * 2 - 1


def _draw(name: str, count: int) -> Tensor:
    """Return ``count`` numbers of the table, from a place that depends on the name."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    start = int.from_bytes(digest, "little") % TABLE_LENGTH
    repeats = (start + count) // TABLE_LENGTH + 1
    return _make_table().repeat(repeats)[start : start + count]


def fill_from_counter(model: nn.Module) -> None:
    """Give every parameter values that depend on its name and shape alone, in place.

    A tensor that the library set to one value keeps it, except zeros of two or more axes, which may
    be weights. Others are uniform: with two or more axes of variance 1 / fan-in, else small.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.is_floating_point() or not parameter.numel():
                continue
            first = parameter.flatten()[0]
            is_weight = parameter.ndim > 1
            if bool((parameter == first).all()) and not (is_weight and first == 0):
                continue
            fan_in = parameter.numel() // parameter.shape[0] if is_weight else 1
            scale = math.sqrt(3.0 / fan_in) if is_weight else BIAS_SCALE
            values = _draw(name, parameter.numel()) * scale
            parameter.copy_(values.view(parameter.shape))


def switch_dropout_off(model: nn.Module) -> None:
    """Set every probability of dropout in modules and configurations to zero, in place."""
    for module in model.modules():
        _set_to_zero(module)
        if hasattr(getattr(module, "config", None), "to_dict"):  # some read it in each step
            _set_to_zero(module.config)


def _set_to_zero(holder: Any) -> None:
    """Set the attributes that name a probability of dropout to zero."""
    for name, value in list(vars(holder).items()):
        if (name == "p" or "drop" in name) and isinstance(value, float):
            setattr(holder, name, 0.0)
