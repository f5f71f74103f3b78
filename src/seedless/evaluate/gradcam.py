"""Grad-CAM (Selvaraju et al., ICCV 2017): the parts of a sample that support a class.

With activations A (steps, channels) of a layer and the class's logit z, channel c has the weight
w_c = mean over steps of dz/dA_c, and step t the value max(0, sum over c of w_c A_tc).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.errors import DataError, ModelError
from seedless.evaluate.attribution import (
    Attribution,
    Float64,
    as_batches,
    evaluation_mode,
    find_layer,
    finish_maps,
    name_samples,
    to_float64,
)
from seedless.models.layers import Classifier


def explain_classes(
    model: nn.Module,
    samples: NDArray[np.float32] | Tensor,
    targets: int | Sequence[int] | NDArray[np.int64],
    *,
    names: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    layer: str | None = None,
    channel_axis: int | None = None,
    batch: int = 64,
) -> Attribution:
    """Return the Grad-CAM map of a class for each sample.

    The model is left as it was: training flags, requires_grad and .grad. Bits repeat for the same
    weights, samples and ``batch`` on the same kind of device.

    Args:
        model: any nn.Module that returns logits (n, K), on any device.
        samples: (n, leads, time) or (n, channels, height, width), as the model receives them.
        targets: the number of the class, one for all samples or one for each.
        names: names of the K classes; by default their numbers.
        ids: names of the samples; by default their indices.
        layer: the name of a module; by default the one that the model declares.
        channel_axis: of the layer's output; by default what the model declares, else 1.
        batch: samples at a time.
    """
    layer, axis = _choose_layer(model, layer, channel_axis)
    module = find_layer(model, layer)
    parts = as_batches(samples, batch)
    count, shape = sum(map(len, parts)), parts[0].shape[2:]
    chosen = _read_targets(targets, count)
    raw: list[Float64] = []
    start = 0
    with evaluation_mode(model):
        for part in parts:
            rows = chosen[start : start + len(part)]
            raw.append(_map_batch(model, module, layer, part, rows, axis, len(shape)))
            start += len(part)
    return Attribution(
        ids=name_samples(ids, count),
        classes=tuple(str(k) if names is None else _name(names, k) for k in chosen.tolist()),
        method="gradcam",
        layer=layer,
        maps=finish_maps(np.concatenate(raw), shape),
    )


def _choose_layer(model: nn.Module, layer: str | None, axis: int | None) -> tuple[str, int]:
    if layer is None:
        if not isinstance(model, Classifier):
            raise ModelError(
                f"{type(model).__name__} declares no attribution layer: say which with layer=, a "
                "name of model.named_modules()"
            )
        layer = model.attribution_layer
    if axis is None:
        axis = model.channel_axis if isinstance(model, Classifier) else 1
    return layer, axis


def _read_targets(targets: Any, count: int) -> NDArray[np.int64]:
    array = np.asarray(targets)
    if array.dtype.kind not in "iu" or array.shape not in ((), (count,)):
        raise DataError(
            f"expected one class number for all, or one for each of {count} samples; got "
            f"{array.dtype} of shape {array.shape}"
        )
    chosen: NDArray[np.int64] = np.broadcast_to(array, (count,)).astype(np.int64)
    return chosen


def _name(names: Sequence[str], number: int) -> str:
    if number >= len(names):
        raise DataError(f"class {number} has no name: there are {len(names)} names")
    return str(names[number])


def _map_batch(
    model: nn.Module,
    module: nn.Module,
    layer: str,
    samples: Tensor,
    targets: NDArray[np.int64],
    axis: int,
    places: int,
) -> Float64:
    """Return max(0, sum over channels of w A) of a batch: (B, steps) or (B, height, width)."""
    outputs: list[Tensor] = []

    def record(_module: nn.Module, _inputs: Any, output: Any) -> Tensor:
        if not isinstance(output, Tensor) or output.ndim != places + 2:
            what = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise ModelError(
                f"expected the layer {layer!r} to give one tensor of {places + 2} axes, with "
                f"channels and {'time' if places == 1 else 'height and width'}; got {what}. Choose "
                "another layer"
            )
        # The gradient ends here: layers before this one do not matter to it. The layers after it
        # get a copy, which they may overwrite.
        outputs.append(output.detach().requires_grad_())
        return outputs[-1].clone()

    device = next((tensor.device for tensor in model.parameters()), samples.device)
    handle = module.register_forward_hook(record)
    try:
        with torch.enable_grad():
            logits = model(samples.to(device))
            if len(outputs) != 1:
                raise ModelError(
                    f"expected the layer {layer!r} to run once in a forward pass, it ran "
                    f"{len(outputs)} times; choose another layer"
                )
            _check_targets(logits, targets)
            # One-hot rows select the logits: the gradient of a gather is a scatter, which may add
            # in any order on a GPU.
            chosen = F.one_hot(torch.from_numpy(targets), logits.shape[1]).to(logits)
            # A product and a sum, since torch warns where the first op of a backward pass on a GPU
            # is a matrix product. The gradient is the same.
            (gradient,) = torch.autograd.grad(
                (logits * chosen).sum(), outputs[0], allow_unused=True
            )
    finally:
        handle.remove()
    if gradient is None:
        raise ModelError(f"the logits do not depend on the layer {layer!r}; choose another one")
    activation = np.moveaxis(to_float64(outputs[0]), axis, -1)
    slopes = np.moveaxis(to_float64(gradient), axis, -1)
    weights = slopes.mean(axis=tuple(range(1, slopes.ndim - 1)), keepdims=True)
    evidence: Float64 = np.maximum((weights * activation).sum(axis=-1), 0.0)
    return evidence


def _check_targets(logits: Tensor, targets: NDArray[np.int64]) -> None:
    if logits.ndim != 2:
        raise ModelError(f"expected logits of shape (n, classes), got {tuple(logits.shape)}")
    odd = targets[(targets < 0) | (targets >= logits.shape[1])]
    if len(odd):
        raise DataError(
            f"expected class numbers from 0 to {logits.shape[1] - 1}, got {int(odd[0])}"
        )
