"""Norm layers of anyone's: recognized by what they compute, on an input of a few numbers.

A norm layer gives the same output for an input and for four times that input. Its gain multiplies
the output, as w or as 1 + w; its bias is added to it.
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

_TOLERANCE = 1e-3  # norm layers add a small number to a variance


def find_norm_values(module: nn.Module) -> dict[str, float]:
    """Return the neutral value of each parameter of a norm layer: {} if it is not a norm layer.

    The neutral value is 1 for a gain w, 0 for a gain 1 + w and for a bias. A copy of the module is
    run; the values that its parameters hold do not matter.

    Example:
        >>> find_norm_values(LlamaRMSNorm(8))
        {'weight': 1.0}
    """
    own = dict(module.named_parameters(recurse=False))
    shapes = {tuple(parameter.shape) for parameter in own.values()}
    if len(list(module.children())) or len(shapes) != 1 or len(next(iter(shapes))) != 1:
        return {}
    if type(module).forward is nn.Module.forward or next(iter(shapes)) == (1,):
        return {}
    layer = copy.deepcopy(module).cpu().float().eval()
    for inputs in _list_inputs(next(iter(shapes))[0]):
        try:
            values = _probe(layer, inputs)
        except Exception:  # another layout, or not a layer of one input
            continue
        if values:
            return values
    return {}


def _list_inputs(features: int) -> Iterator[Tensor]:
    """Yield inputs with the features last, then with the channels second."""
    for shape in ((2, 3, features), (2, features, 5), (2, features, 4, 5), (2, features, 2, 3, 4)):
        numbers = torch.arange(float(torch.Size(shape).numel()))
        yield (torch.cos(numbers * numbers * 0.37) * 2 + 0.5).reshape(shape)


@torch.no_grad()
def _probe(layer: nn.Module, inputs: Tensor) -> dict[str, float]:
    names = [name for name, _ in layer.named_parameters()]

    def run(value: float, name: str, others: float, factor: float = 1.0) -> Tensor:
        for own, parameter in layer.named_parameters():
            parameter.fill_(value if own == name else others)
        output = layer(inputs * factor)
        if not isinstance(output, Tensor) or output.shape != inputs.shape:
            raise TypeError("not a layer from one tensor to another of its shape")
        return output

    # [Step 1] Sort the parameters: one that adds itself to the output is a bias.
    biases = [
        name
        for name in names
        if _is_close(run(3.0, name, 1.0) - run(1.0, name, 1.0), torch.tensor(2.0))
    ]
    gains = [name for name in names if name not in biases]
    if len(gains) != 1:
        return {}
    gain = gains[0]
    # [Step 2] The output must not change with the size of the input, nor be constant.
    plain, larger = run(1.0, gain, 0.0), run(1.0, gain, 0.0, factor=4.0)
    if not _is_close(plain, larger) or _is_close(plain, plain.mean()):
        return {}
    # [Step 3] The gain for which the output vanishes is 0, or -1 where the gain is 1 + w.
    for zero, neutral in ((0.0, 1.0), (-1.0, 0.0)):
        doubled = run(zero + 2.0, gain, 0.0)
        unit = run(zero + 1.0, gain, 0.0)
        if _is_close(run(zero, gain, 0.0), torch.tensor(0.0)) and _is_close(doubled, 2 * unit):
            return {name: neutral if name == gain else 0.0 for name in names}
    return {}


def _is_close(left: Tensor, right: Tensor) -> bool:
    return bool(torch.allclose(left, right.expand_as(left), rtol=_TOLERANCE, atol=_TOLERANCE))
