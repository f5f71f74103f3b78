"""The negative control: flip one bit of one weight, and the run must no longer verify."""

import torch
from torch import nn

from seedless.core.errors import ConfigError
from seedless.core.registry import suggest

_INTEGER_TYPES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def flip_bit(model: nn.Module, target: str) -> None:
    """Flip one bit of a model's parameter in place.

    Args:
        target: "PARAMETER:ELEMENT:BIT". Elements count in C order; bit 0 is the mantissa's lowest.

    Example:
        >>> flip_bit(model, "head.weight:0:0")
    """
    name, element, bit = parse_target(model, target)
    parameter = dict(model.named_parameters())[name].detach()
    size = parameter.element_size()
    contiguous = parameter.clone(memory_format=torch.contiguous_format)
    words = contiguous.view(-1).view(_INTEGER_TYPES[size])
    is_sign = bit == 8 * size - 1 and size > 1  # a signed integer has no +2^63 (or +2^31, ...)
    words[element] ^= -(1 << bit) if is_sign else 1 << bit
    parameter.copy_(contiguous)


def parse_target(model: nn.Module, target: str) -> tuple[str, int, int]:
    """Return parameter name, element and bit; refuse a target that the model does not have."""
    parts = target.rsplit(":", 2)
    if len(parts) != 3 or not parts[1].isdecimal() or not parts[2].isdecimal():
        raise ConfigError(
            f"expected control.flip_bit as PARAMETER:ELEMENT:BIT, such as head.weight:0:0, got "
            f"{target!r}"
        )
    parameters = dict(model.named_parameters())
    name, element, bit = parts[0], int(parts[1]), int(parts[2])
    if name not in parameters:
        raise ConfigError(
            f"control.flip_bit names the parameter {name!r}, which the model does not have"
            f"{suggest(name, parameters)}"
        )
    elements, bits = parameters[name].numel(), 8 * parameters[name].element_size()
    if element >= elements or bit >= bits:
        raise ConfigError(
            f"control.flip_bit: {name} has elements 0 to {elements - 1} of {bits} bits, got "
            f"element {element} and bit {bit}"
        )
    return name, element, bit
