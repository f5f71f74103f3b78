"""Signs that a model was trained before, or holds loaded weights.

Weights alone do not tell: libraries start them in many ways. Norm layers do: before training their
gains are one number each, their biases zero, and their running statistics untouched.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parameter import is_lazy

from seedless.init.parameter_rules import NORM_LAYERS


def find_trained_layers(model: nn.Module) -> list[str]:
    """Return the names of norm layers that hold what only training or loading puts there.

    A model without norm layers shows no sign, whatever it holds.

    Example:
        >>> find_trained_layers(torchvision.models.resnet18(weights="DEFAULT"))[0]
        'bn1'
    """
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, NORM_LAYERS) and _has_values(module) and _is_trained(module)
    ]


def warn_of_discarded_weights(model: object, basis: str, say: Callable[[str], None]) -> None:
    """Say so where trained weights are about to be replaced by a start.

    Args:
        model: what `fit` was given; a function that makes a model is not called here.
        basis: the start; "given" keeps the weights.
        say: takes the text.
    """
    trained = find_trained_layers(model) if isinstance(model, nn.Module) else []
    if basis == "given" or not trained:
        return
    others = f" and {len(trained) - 1} more norm layers" if len(trained) > 1 else ""
    say(
        f"the model was trained before or holds loaded weights (seen in {trained[0]}{others}); "
        'they are replaced by a seed-free start. To keep them, set init.basis to "given": '
        'fit(..., config={"init": {"basis": "given"}}); to begin with those of a file, which the '
        'receipt then names, fit(..., weights="file.safetensors")'
    )


def _has_values(norm: nn.Module) -> bool:
    """Return whether a layer holds numbers: one of unknown shape or on the meta device does not."""
    tensors = (*norm.parameters(recurse=False), *norm.buffers(recurse=False))
    return not any(is_lazy(tensor) or tensor.is_meta for tensor in tensors)


def _is_trained(norm: nn.Module) -> bool:
    if isinstance(norm, _NormBase):
        mean, batches = norm.running_mean, norm.num_batches_tracked
        if (batches is not None and int(batches) > 0) or (mean is not None and bool(mean.any())):
            return True
    weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
    if isinstance(weight, torch.Tensor) and bool(weight.isnan().all()):
        return False  # `seedless.build` fills a model with NaN until it has a start
    changed = isinstance(weight, torch.Tensor) and not bool((weight == weight.flatten()[0]).all())
    return changed or (isinstance(bias, torch.Tensor) and bool(bias.any()))
