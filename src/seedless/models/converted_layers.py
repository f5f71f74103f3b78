"""Torch's dropout layers with masks by sample, epoch and layer, for `convert`.

Each is a subclass of the layer it replaces, with the same rate ``p``, which may be changed.
"""

from typing import Any

import torch
from torch import Tensor, nn

from seedless.numerics.forward_calls import hash_layer, number_layer
from seedless.numerics.sample_draws import Axis, drop


class _BySample:
    """The forward pass of all of them."""

    features = False
    alpha = False
    # Set by `convert`: the name in the model, the axis of the samples, the first call's number.
    seedless_name: str
    seedless_axis: Axis
    first_layer: int
    p: float
    training: bool

    def name_layer(self, name: str, axis: Axis) -> None:
        """Set the name by which the layer's masks are drawn, and the axis of its samples."""
        self.seedless_name, self.seedless_axis = name, axis
        self.first_layer = hash_layer(name, 0, 0)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        """Return the input with elements dropped, in training mode."""
        if not self.training or self.p == 0:
            return input
        # torch.compile cannot count calls: it gives all calls of a layer the masks of the first.
        compiled = torch.compiler.is_compiling()
        layer = self.first_layer if compiled else number_layer(self.seedless_name)
        return drop(
            input,
            self.p,
            layer=layer,
            axis=self.seedless_axis,
            features=self.features,
            alpha=self.alpha,
            module=self.seedless_name,
        )


class SampleDropout(_BySample, nn.Dropout):
    """nn.Dropout by sample."""


class SampleDropout1d(_BySample, nn.Dropout1d):
    """nn.Dropout1d by sample: whole channels of (B, C, L)."""

    features = True


class SampleDropout2d(_BySample, nn.Dropout2d):
    """nn.Dropout2d by sample: whole channels of (B, C, H, W)."""

    features = True


class SampleDropout3d(_BySample, nn.Dropout3d):
    """nn.Dropout3d by sample: whole channels of (B, C, D, H, W)."""

    features = True


class SampleAlphaDropout(_BySample, nn.AlphaDropout):
    """nn.AlphaDropout by sample."""

    alpha = True


class SampleFeatureAlphaDropout(_BySample, nn.FeatureAlphaDropout):
    """nn.FeatureAlphaDropout by sample."""

    features = alpha = True


REPLACEMENTS: dict[type[nn.Module], Any] = {
    nn.Dropout: SampleDropout,
    nn.Dropout1d: SampleDropout1d,
    nn.Dropout2d: SampleDropout2d,
    nn.Dropout3d: SampleDropout3d,
    nn.AlphaDropout: SampleAlphaDropout,
    nn.FeatureAlphaDropout: SampleFeatureAlphaDropout,
}
