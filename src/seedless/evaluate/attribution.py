"""Attribution maps: how much each time step or pixel of a sample matters to a prediction.

A map is computed from a layer whose output still has time or space axes, upsampled to the size of
the sample and scaled to a largest value of 1. It is computed on the CPU in float64 and rounded to
float32 once, without random numbers: identical weights give identical maps and digests.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.digests import digest, digest_value
from seedless.core.errors import DataError, ModelError
from seedless.core.registry import suggest

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attribution:
    """Maps of some samples, by one method at one layer.

    Attributes:
        ids: (n,) names of the samples.
        classes: (n,) the class that each map explains; "" where a map belongs to no class.
        method: "gradcam" or "attention".
        layer: the module's name in the model.
        maps: (n, time) or (n, height, width) float32, at least 0, each with a largest value of 1.
            A map that is 0 everywhere (no evidence for the class) stays 0.
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    method: str
    layer: str
    maps: NDArray[np.float32]

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.classes) == len(self.maps):
            raise DataError(
                f"expected one id, one class and one map for each sample; got {len(self.ids)}, "
                f"{len(self.classes)} and {len(self.maps)}"
            )

    @cached_property
    def digest(self) -> str:
        """One digest over the maps' bytes, the names, the method and the layer."""
        return digest_value(
            {
                "ids": list(self.ids),
                "classes": list(self.classes),
                "method": self.method,
                "layer": self.layer,
                "maps": digest({"maps": self.maps}),
            }
        )


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Use a model in evaluation mode with deterministic kernels, and restore everything after.

    Each module gets back its own training flag.
    """
    flags = [(module, module.training) for module in model.modules()]
    mode = torch.get_deterministic_debug_mode()
    model.eval()
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        for module, training in flags:
            module.training = training


def find_layer(model: nn.Module, name: str) -> nn.Module:
    """Return the module of this name; an error names the nearest one."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    if not name or name not in modules:
        known = [known for known in modules if known]
        raise ModelError(
            f"the model has no layer {name!r}{suggest(name, known)}; its modules are named as in "
            "model.named_modules()"
        )
    return modules[name]


def as_batches(samples: NDArray[np.float32] | Tensor, batch: int) -> tuple[Tensor, ...]:
    """Return samples (n, ...) in batches of a fixed size, so that bits repeat."""
    if batch < 1:
        raise DataError(f"expected batches of at least one sample, got {batch}")
    tensor = torch.from_numpy(samples) if isinstance(samples, np.ndarray) else samples.detach()
    if tensor.ndim not in (3, 4) or 0 in tensor.shape:
        raise DataError(
            "expected samples of shape (n, leads, time) or (n, channels, height, width), got "
            f"{tuple(tensor.shape)}"
        )
    return torch.split(tensor.float(), batch)


def name_samples(ids: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return the names of the samples; by default their indices."""
    return tuple(map(str, range(count) if ids is None else ids))


def upsample(values: Float64, axis: int, length: int) -> Float64:
    """Interpolate linearly along an axis of S steps to ``length`` points.

    Point t is at position t (S - 1) / (length - 1), split into a whole number i and a remainder r
    by integer division, so that no position is rounded:
    y_t = x_i + (x_(i+1) - x_i) (r / (length - 1)). The first and the last step are at the first and
    the last point: kernels are odd and centred, so that step j of stride s depends on the samples
    around s j. A single step is repeated.
    """
    values = np.moveaxis(values, axis, -1)
    steps = values.shape[-1]
    if steps == 1 or length == 1:
        out = np.repeat(values[..., :1], length, axis=-1)
    else:
        whole, rest = np.divmod(np.arange(length, dtype=np.int64) * (steps - 1), length - 1)
        after = np.minimum(whole + 1, steps - 1)
        before = values[..., whole]
        out = before + (values[..., after] - before) * (rest / (length - 1))
    return np.moveaxis(out, -1, axis)


def finish_maps(raw: Float64, shape: Sequence[int]) -> NDArray[np.float32]:
    """Upsample (n, steps...) to (n, *shape) and divide each map by its largest value.

    Dividing after upsampling makes the largest value exactly 1. A map of zeros stays zero.
    """
    for axis, length in enumerate(shape, start=1):
        raw = upsample(raw, axis, length)
    flat = raw.reshape(len(raw), -1)
    if not np.isfinite(flat).all():
        raise ModelError("the maps hold NaN or infinity: the model's weights are not finite")
    top = flat.max(axis=1, keepdims=True)
    scaled = np.divide(flat, top, out=np.zeros_like(flat), where=top > 0)
    maps: NDArray[np.float32] = scaled.reshape(raw.shape).astype(np.float32)
    return maps


def to_float64(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor of any device as a float64 array."""
    array: NDArray[Any] = tensor.detach().cpu().double().numpy()
    return array
