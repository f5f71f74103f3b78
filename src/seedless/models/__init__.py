"""The four published models, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import nn

from seedless.core.errors import ModelError
from seedless.core.registry import choose
from seedless.models.baseline import Baseline
from seedless.models.conformer import Conformer
from seedless.models.resnet18 import ResNet18
from seedless.models.xresnet1d import XResNet1d


@dataclass(frozen=True)
class Entry:
    """A model, what it calls its input's width, its published sizes, and its small variant."""

    make: Callable[..., nn.Module]
    entrance: str
    inputs: int
    classes: int
    small: Mapping[str, Any]


MODELS: dict[str, Entry] = {
    "conformer": Entry(Conformer, "leads", 12, 12, {"width": 8, "blocks": (1, 1, 2, 1)}),
    "baseline": Entry(Baseline, "leads", 12, 12, {"width": 8, "blocks": (1, 1, 1)}),
    "xresnet1d101": Entry(XResNet1d, "leads", 12, 12, {"width": 16, "blocks": (1, 1, 2, 1)}),
    "resnet18": Entry(ResNet18, "channels", 3, 100, {"width": 8, "blocks": (1, 1, 1, 1)}),
}


def build(
    name: str,
    *,
    leads: int | None = None,
    channels: int | None = None,
    classes: int | None = None,
    small: bool = False,
) -> nn.Module:
    """Return a model that no one has initialized yet: every parameter is NaN.

    torch draws random weights as it builds a layer. Here the layers are built without memory (on
    the meta device), then given memory filled with NaN, and running statistics with their start
    values. So no global generator moves, no draw is wasted, and a model whose initialization was
    forgotten answers NaN instead of quietly training from some seed. Call `initialize` next, or
    load weights.

    Args:
        name: a name in `MODELS`.
        leads: leads of a recording (ECG models, 12 by default).
        channels: channels of an image (resnet18, 3 by default).
        classes: classes (12 by default, 100 for resnet18).
        small: the same architecture with few blocks and channels, for tests.
    """
    entry = choose("model", name, MODELS)
    given = {"leads": leads, "channels": channels}
    for entrance, value in given.items():
        if entrance != entry.entrance and value is not None:
            raise ModelError(
                f"model {name!r} takes {entry.entrance}, not {entrance}; got {entrance}={value!r}"
            )
    inputs = _size(entry.entrance, given[entry.entrance], entry.inputs)
    sizes = {entry.entrance: inputs, "classes": _size("classes", classes, entry.classes)}
    with torch.device("meta"):
        model = entry.make(**sizes, **(entry.small if small else {}))
    return _materialize(model)


def _size(name: str, value: object, default: int) -> int:
    """Return the value asked for, or the default, if it is a positive integer."""
    if value is None:
        return default
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ModelError(f"expected {name} to be an integer >= 1, got {value!r}")
    return int(value)


def _materialize(model: nn.Module) -> nn.Module:
    """Give a model without memory some: NaN in parameters, start values in norms' buffers."""
    # `to_empty` would ask torch's symbolic shapes for them, half a second of imports.
    model._apply(lambda meta: torch.empty(meta.shape, dtype=meta.dtype, device="cpu"))  # type: ignore[no-untyped-call]  # untyped in torch
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.reset_running_stats()
        elif next(module.buffers(recurse=False), None) is not None:
            raise ModelError(
                f"{type(module).__name__} holds a buffer that building would lose; "
                "compute it in forward, or teach `_materialize` its start value"
            )
    return model
