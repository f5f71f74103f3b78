"""The ops whose digests are committed: each a function, and the shapes and scales of its inputs.

Inputs are drawn by a counter, so they are the same everywhere; EDGES put denormals, huge numbers
and the places where formulas change among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.numerics.counter import draw

EDGES = (
    *(0.0, -0.0, 1e-45, -1e-45, 3e-39, -3e-39, 1.1754944e-38, 1e-20, -1e-20, 1e-7, -1e-4),
    *(0.5, -0.5, 1.0, -1.0, 5.9, -6.1, 20.5, 88.7, -87.5, -103.9, 1e5, -3e9, 2e22, -1e30),
)


@dataclass(frozen=True)
class Drawn:
    """An input: uniform in +-scale around shift, positive or with the edges in front if asked."""

    shape: tuple[int, ...]
    scale: float = 1.0
    shift: float = 0.0
    positive: bool = False
    edges: bool = False

    def make(self, name: str, device: torch.device) -> Tensor:
        """Return the tensor in float32; its values depend on the name alone."""
        count = 1
        for size in self.shape:
            count *= size
        values = (torch.from_numpy(draw(0, name, count)) * 2 - 1) * self.scale + self.shift
        if self.edges:
            values[: len(EDGES)] = torch.tensor(EDGES, dtype=torch.float64)
        values = values.abs() if self.positive else values
        return values.to(torch.float32).view(self.shape).to(device)


@dataclass(frozen=True)
class Case:
    """A function and its inputs."""

    run: Callable[..., Tensor]
    inputs: tuple[Drawn, ...]


LINE = Drawn((4000,), 9.0, edges=True)
MILD = Drawn((1000,), 4.0)
PLUS = Drawn((1000,), 9.0, positive=True, edges=True)
ROWS = Drawn((6, 50, 96), 2.0, 1.0)
PICTURE = Drawn((3, 8, 13, 11))
LOGITS = Drawn((40, 30), 5.0)
SIGNAL = Drawn((3, 12, 60))


def _labels(x: Tensor) -> Tensor:
    return torch.arange(x.shape[0], device=x.device) * 7 % x.shape[1]


def _places(x: Tensor) -> Tensor:
    return torch.arange(x.shape[0], device=x.device) * 7 % 5


def _targets(x: Tensor) -> Tensor:
    return (torch.arange(x.numel(), device=x.device) % 3 == 0).to(x.dtype).view(x.shape)


OPS: dict[str, Case] = {
    "exp": Case(torch.exp, (Drawn((4000,), 80.0),)),
    "expm1": Case(torch.expm1, (MILD,)),
    "log": Case(torch.log, (PLUS,)),
    "log1p": Case(torch.log1p, (PLUS,)),
    "erf": Case(torch.erf, (LINE,)),
    "tanh": Case(torch.tanh, (LINE,)),
    "sigmoid": Case(torch.sigmoid, (LINE,)),
    "sqrt": Case(torch.sqrt, (PLUS,)),
    "rsqrt": Case(torch.rsqrt, (PLUS,)),
    "sin": Case(torch.sin, (LINE,)),
    "cos": Case(torch.cos, (LINE,)),
    "pow3": Case(lambda x: x**3, (MILD,)),
    "pow1.7": Case(lambda x: x**1.7, (Drawn((1000,), 9.0, positive=True),)),
    "gelu": Case(F.gelu, (LINE,)),
    "gelu_tanh": Case(lambda x: F.gelu(x, approximate="tanh"), (MILD,)),
    "silu": Case(F.silu, (MILD,)),
    "mish": Case(F.mish, (MILD,)),
    "elu": Case(F.elu, (MILD,)),
    "selu": Case(F.selu, (MILD,)),
    "softplus": Case(F.softplus, (MILD,)),
    "logsigmoid": Case(F.logsigmoid, (LINE,)),
    "relu": Case(F.relu, (LINE,)),
    "relu6": Case(F.relu6, (LINE,)),
    "leaky_relu": Case(F.leaky_relu, (LINE,)),
    "prelu": Case(F.prelu, (PICTURE, Drawn((8,)))),
    "hardswish": Case(F.hardswish, (MILD,)),
    "hardsigmoid": Case(F.hardsigmoid, (MILD,)),
    "glu": Case(F.glu, (ROWS,)),
    "div": Case(torch.div, (LINE, Drawn((4000,), 3.0))),
    "div7": Case(lambda x: x / 7, (LINE,)),
    "addcmul": Case(lambda a, b: torch.addcmul(a, a, b, value=0.3), (MILD, MILD)),
    "lerp": Case(lambda a, b: torch.lerp(a, b, 0.1), (MILD, MILD)),
    "maximum": Case(torch.maximum, (LINE, Drawn((4000,), 9.0))),
    "clamp": Case(lambda x: x.clamp(-2, 3), (LINE,)),
    "sum": Case(lambda x: x.sum(0), (Drawn((9000, 3)),)),
    "sum_long": Case(lambda x: x.sum(), (Drawn((200_000,)),)),
    "mean": Case(lambda x: x.mean((0, 2)), (ROWS,)),
    "var": Case(lambda x: x.var(1), (ROWS,)),
    "std": Case(lambda x: x.std(1), (ROWS,)),
    "norm": Case(lambda x: x.norm(dim=1), (ROWS,)),
    "cumsum": Case(lambda x: x.cumsum(1), (LOGITS,)),
    "amax": Case(lambda x: x.amax(1), (ROWS,)),
    "max": Case(lambda x: x.max(1)[0], (ROWS,)),
    "softmax": Case(lambda x: x.softmax(-1), (LOGITS,)),
    "log_softmax": Case(lambda x: x.log_softmax(-1), (LOGITS,)),
    "mm": Case(torch.mm, (Drawn((50, 100)), Drawn((100, 40)))),
    "mm_long": Case(torch.mm, (Drawn((8, 20_000)), Drawn((20_000, 6)))),
    "bmm": Case(torch.bmm, (Drawn((6, 30, 40)), Drawn((6, 40, 20)))),
    "linear": Case(F.linear, (ROWS, Drawn((20, 96)), Drawn((20,)))),
    "conv1d": Case(lambda x, w: F.conv1d(x, w, None, 2, 2), (SIGNAL, Drawn((10, 12, 5)))),
    "conv2d": Case(lambda x, w: F.conv2d(x, w, None, 1, 2, 2), (PICTURE, Drawn((6, 8, 3, 3)))),
    "conv2d_groups": Case(
        lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 4), (PICTURE, Drawn((12, 2, 3, 3)))
    ),
    "conv3d": Case(F.conv3d, (Drawn((2, 3, 6, 7, 5)), Drawn((4, 3, 2, 3, 2)), Drawn((4,)))),
    "conv_transpose1d": Case(
        lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, 1), (SIGNAL, Drawn((12, 7, 4)))
    ),
    "conv_transpose2d": Case(
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, 2), (PICTURE, Drawn((8, 3, 3, 3)))
    ),
    "layer_norm": Case(
        lambda x, w, b: F.layer_norm(x, (96,), w, b), (ROWS, Drawn((96,)), Drawn((96,)))
    ),
    "rms_norm": Case(lambda x, w: F.rms_norm(x, (96,), w), (ROWS, Drawn((96,)))),
    "batch_norm": Case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        (PICTURE, Drawn((8,)), Drawn((8,))),
    ),
    "group_norm": Case(
        lambda x, w, b: F.group_norm(x, 4, w, b), (PICTURE, Drawn((8,)), Drawn((8,)))
    ),
    "instance_norm": Case(F.instance_norm, (PICTURE,)),
    "max_pool1d": Case(lambda x: F.max_pool1d(x, 3, 2, 1), (SIGNAL,)),
    "max_pool2d": Case(lambda x: F.max_pool2d(x, 3, 2, 1), (PICTURE,)),
    "avg_pool1d": Case(lambda x: F.avg_pool1d(x, 3, 2, 1), (SIGNAL,)),
    "avg_pool2d": Case(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (PICTURE,)),
    "adaptive_avg_pool1d": Case(lambda x: F.adaptive_avg_pool1d(x, 7), (SIGNAL,)),
    "adaptive_avg_pool2d": Case(lambda x: F.adaptive_avg_pool2d(x, (5, 4)), (PICTURE,)),
    "adaptive_max_pool2d": Case(lambda x: F.adaptive_max_pool2d(x, (5, 4)), (PICTURE,)),
    "attention": Case(F.scaled_dot_product_attention, (Drawn((2, 3, 9, 8)),) * 3),
    "attention_causal": Case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (Drawn((2, 3, 9, 8)),) * 3,
    ),
    "embedding": Case(lambda w: F.embedding(_places(w.new_zeros(60)), w), (Drawn((9, 6)),)),
    "index_add": Case(lambda x, y: x.index_add(0, _places(y), y), (Drawn((9, 6)), Drawn((60, 6)))),
    "cross_entropy": Case(lambda x: F.cross_entropy(x, _labels(x)), (LOGITS,)),
    "cross_entropy_smooth": Case(
        lambda x: F.cross_entropy(x, _labels(x), label_smoothing=0.1), (LOGITS,)
    ),
    "cross_entropy_weighted": Case(
        lambda x: F.cross_entropy(x, _labels(x), weight=torch.ones_like(x[0]) * 0.3), (LOGITS,)
    ),
    "bce_logits": Case(
        lambda x: F.binary_cross_entropy_with_logits(
            x, _targets(x), pos_weight=x[0].detach().abs()
        ),
        (LOGITS,),
    ),
    "bce": Case(lambda x: F.binary_cross_entropy(x, _targets(x)), (Drawn((40, 30), 0.4, 0.5),)),
    "mse": Case(F.mse_loss, (LOGITS, LOGITS)),
    "l1": Case(F.l1_loss, (LOGITS, LOGITS)),
    "huber": Case(F.huber_loss, (LOGITS, LOGITS)),
    "smooth_l1": Case(lambda a, b: F.smooth_l1_loss(a, b, beta=0.7), (LOGITS, LOGITS)),
}
