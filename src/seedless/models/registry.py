"""The four published networks by name, and how one is built without random numbers."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from seedless.core.checks import check_integer
from seedless.core.errors import ModelError
from seedless.core.registry import choose
from seedless.models.baseline import Baseline
from seedless.models.conformer import Conformer
from seedless.models.resnet18 import ResNet18
from seedless.models.xresnet1d import XResNet1d


@dataclass(frozen=True)
class ModelEntry:
    """A network of the registry.

    Attributes:
        make: its class.
        input_name: what its inputs consist of, "leads" or "channels".
        inputs: their published number.
        classes: the published number of classes.
        small: arguments of its small variant, for tests.
        head: what its head declares, "etf" or "basis".
    """

    make: Callable[..., nn.Module]
    input_name: str
    inputs: int
    classes: int
    small: Mapping[str, Any]
    head: str = "basis"


MODELS: dict[str, ModelEntry] = {
    "conformer": ModelEntry(
        Conformer, "leads", 12, 12, {"width": 8, "blocks": (1, 1, 2, 1)}, head="etf"
    ),
    "baseline": ModelEntry(Baseline, "leads", 12, 12, {"width": 8, "blocks": (1, 1, 1)}),
    "xresnet1d101": ModelEntry(XResNet1d, "leads", 12, 12, {"width": 16, "blocks": (1, 1, 2, 1)}),
    "resnet18": ModelEntry(ResNet18, "channels", 3, 100, {"width": 8, "blocks": (1, 1, 1, 1)}),
}


def build(
    name: str,
    *,
    leads: int | None = None,
    channels: int | None = None,
    classes: int | None = None,
    small: bool = False,
) -> nn.Module:
    """Return a network that is not initialized yet: every parameter is NaN.

    Call `initialize` next, or load weights. A network whose initialization was forgotten returns
    NaN and cannot train unnoticed from random weights. No random generator is used.

    Args:
        name: a name in `MODELS`.
        leads: leads of a recording (ECG models, 12 by default).
        channels: channels of an image (resnet18, 3 by default).
        classes: number of classes (12 by default, 100 for resnet18).
        small: the same architecture with few blocks and channels, for tests.

    Example:
        >>> model = seedless.build("conformer", leads=12, classes=5)
        >>> plan = seedless.initialize(model, "mixed")
    """
    entry = choose("model", name, MODELS)
    arguments = {"leads": leads, "channels": channels}
    for argument, value in arguments.items():
        if argument != entry.input_name and value is not None:
            raise ModelError(
                f"model {name!r} takes {entry.input_name}, not {argument}; got {argument}={value!r}"
            )
    inputs = arguments[entry.input_name]
    sizes = {
        entry.input_name: entry.inputs if inputs is None else inputs,
        "classes": entry.classes if classes is None else classes,
    }
    sizes = {key: check_integer(key, value, 1, error=ModelError) for key, value in sizes.items()}
    # torch uses its global generator when it builds a layer with memory, so layers are built on the
    # meta device, without memory.
    with torch.device("meta"):
        model = entry.make(**sizes, **(entry.small if small else {}))
    return _materialize(model)


def _materialize(model: nn.Module) -> nn.Module:
    """Allocate the model's memory: NaN in parameters, start values in norm layers' buffers."""
    # Not `to_empty`, which imports torch's symbolic shapes: half a second.
    model._apply(lambda meta: torch.empty(meta.shape, dtype=meta.dtype, device="cpu"))  # type: ignore[no-untyped-call]  # untyped in torch
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.reset_running_stats()
        elif next(module.buffers(recurse=False), None) is not None:
            raise ModelError(
                f"{type(module).__name__} has a buffer whose start value building would lose; "
                "compute it in forward, or set its start value in `_materialize`"
            )
    return model
