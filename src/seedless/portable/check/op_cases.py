"""The ops whose digests are committed: each a function, and the shapes and scales of its inputs.

Here functions, sums, products and what else stands alone; `cases_layers` has what layers and losses
call.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from seedless.portable.check.layer_cases import LAYERS
from seedless.portable.test_inputs import (
    LINE,
    LOGITS,
    MILD,
    PICTURE,
    PLUS,
    ROWS,
    SIGNAL,
    Case,
    Drawn,
    labels,
    places,
    targets,
)

OPS: dict[str, Case] = {
    **LAYERS,
    "log2": Case(torch.log2, (PLUS,)),
    "log10": Case(torch.log10, (PLUS,)),
    "exp2": Case(torch.exp2, (Drawn((1000,), 60.0),)),
    "pow_tensor": Case(torch.pow, (Drawn((1000,), 9.0, positive=True), Drawn((1000,), 3.0))),
    "logaddexp": Case(torch.logaddexp, (MILD, MILD)),
    "logsumexp": Case(lambda x: x.logsumexp(1), (LOGITS,)),
    "xlogy": Case(torch.xlogy, (MILD, Drawn((1000,), 9.0, positive=True))),
    "celu": Case(lambda x: F.celu(x, 0.7), (MILD,)),
    "hardtanh": Case(F.hardtanh, (LINE,)),
    "hardshrink": Case(F.hardshrink, (LINE,)),
    "softshrink": Case(F.softshrink, (LINE,)),
    "tanhshrink": Case(F.tanhshrink, (MILD,)),
    "softsign": Case(F.softsign, (MILD,)),
    "threshold": Case(lambda x: F.threshold(x, 0.1, 0.3), (LINE,)),
    "topk": Case(lambda x: x.topk(5)[0], (LOGITS,)),
    "sort": Case(lambda x: x.sort(dim=0)[0], (LOGITS,)),
    "einsum": Case(
        lambda a, b: torch.einsum("bij,bkj->bik", a, b), (Drawn((4, 9, 30)), Drawn((4, 7, 30)))
    ),
    "baddbmm": Case(
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0.3, alpha=0.7),
        (Drawn((2, 5, 6)), Drawn((2, 5, 40)), Drawn((2, 40, 6))),
    ),
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
    "embedding": Case(lambda w: F.embedding(places(w.new_zeros(60)), w), (Drawn((9, 6)),)),
    "index_add": Case(lambda x, y: x.index_add(0, places(y), y), (Drawn((9, 6)), Drawn((60, 6)))),
    "cross_entropy": Case(lambda x: F.cross_entropy(x, labels(x)), (LOGITS,)),
    "cross_entropy_smooth": Case(
        lambda x: F.cross_entropy(x, labels(x), label_smoothing=0.1), (LOGITS,)
    ),
    "cross_entropy_weighted": Case(
        lambda x: F.cross_entropy(x, labels(x), weight=torch.ones_like(x[0]) * 0.3), (LOGITS,)
    ),
    "bce_logits": Case(
        lambda x: F.binary_cross_entropy_with_logits(x, targets(x), pos_weight=x[0].detach().abs()),
        (LOGITS,),
    ),
    "bce": Case(lambda x: F.binary_cross_entropy(x, targets(x)), (Drawn((40, 30), 0.4, 0.5),)),
    "mse": Case(F.mse_loss, (LOGITS, LOGITS)),
    "l1": Case(F.l1_loss, (LOGITS, LOGITS)),
    "huber": Case(F.huber_loss, (LOGITS, LOGITS)),
    "smooth_l1": Case(lambda a, b: F.smooth_l1_loss(a, b, beta=0.7), (LOGITS, LOGITS)),
}
