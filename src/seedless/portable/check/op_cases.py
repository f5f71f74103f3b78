"""The ops whose digests are committed: each a function, and the shapes and scales of its inputs.

Here are elementwise functions, sums, products, norms and pools; `layer_cases` has more of what
layers and losses call.
"""

import torch
import torch.nn.functional as F

from seedless.portable.check.layer_cases import LAYERS
from seedless.portable.test_inputs import (
    IMAGE,
    LOGITS,
    POSITIVE_VALUES,
    ROWS,
    SIGNAL,
    SMALL_VALUES,
    VALUES,
    Case,
    Input,
    make_group_ends,
    make_indices,
    make_labels,
    make_targets,
    make_words,
)

OPS: dict[str, Case] = {
    **LAYERS,
    "log2": Case(torch.log2, (POSITIVE_VALUES,)),
    "log10": Case(torch.log10, (POSITIVE_VALUES,)),
    "exp2": Case(torch.exp2, (Input((1000,), 60.0),)),
    "pow_tensor": Case(torch.pow, (Input((1000,), 9.0, positive=True), Input((1000,), 3.0))),
    "logaddexp": Case(torch.logaddexp, (SMALL_VALUES, SMALL_VALUES)),
    "logsumexp": Case(lambda x: x.logsumexp(1), (LOGITS,)),
    "xlogy": Case(torch.xlogy, (SMALL_VALUES, Input((1000,), 9.0, positive=True))),
    "celu": Case(lambda x: F.celu(x, 0.7), (SMALL_VALUES,)),
    "hardtanh": Case(F.hardtanh, (VALUES,)),
    "hardshrink": Case(F.hardshrink, (VALUES,)),
    "softshrink": Case(F.softshrink, (VALUES,)),
    "tanhshrink": Case(F.tanhshrink, (SMALL_VALUES,)),
    "softsign": Case(F.softsign, (SMALL_VALUES,)),
    "threshold": Case(lambda x: F.threshold(x, 0.1, 0.3), (VALUES,)),
    "topk": Case(lambda x: x.topk(5)[0], (LOGITS,)),
    "sort": Case(lambda x: x.sort(dim=0)[0], (LOGITS,)),
    "einsum": Case(
        lambda a, b: torch.einsum("bij,bkj->bik", a, b), (Input((4, 9, 30)), Input((4, 7, 30)))
    ),
    "baddbmm": Case(
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0.3, alpha=0.7),
        (Input((2, 5, 6)), Input((2, 5, 40)), Input((2, 40, 6))),
    ),
    "atan": Case(torch.atan, (VALUES,)),
    "acos": Case(torch.acos, (Input((1000,), 0.999),)),
    "lgamma": Case(torch.lgamma, (Input((1000,), 9.0, 3.0),)),
    "digamma": Case(torch.digamma, (Input((1000,), 9.0, 3.0),)),
    "div_floor": Case(
        lambda a, b: torch.div(a, b, rounding_mode="floor") * a, (VALUES, Input((4000,), 3.0))
    ),
    "grouped_mm": Case(
        lambda a, b: torch._grouped_mm(a, b, offs=make_group_ends(a)),
        (Input((40, 24)), Input((4, 24, 8))),
    ),
    "ctc_loss": Case(
        lambda x: F.ctc_loss(
            x.log_softmax(2), make_words(x), torch.tensor([12, 9, 7]), torch.tensor([4, 4, 2])
        ),
        (Input((12, 3, 6), 3.0),),
    ),
    "index_2d": Case(lambda x: x[make_indices(x.new_zeros(60)).view(12, 5)], (Input((9, 6)),)),
    "exp": Case(torch.exp, (Input((4000,), 80.0),)),
    "expm1": Case(torch.expm1, (SMALL_VALUES,)),
    "log": Case(torch.log, (POSITIVE_VALUES,)),
    "log1p": Case(torch.log1p, (POSITIVE_VALUES,)),
    "erf": Case(torch.erf, (VALUES,)),
    "tanh": Case(torch.tanh, (VALUES,)),
    "sigmoid": Case(torch.sigmoid, (VALUES,)),
    "sqrt": Case(torch.sqrt, (POSITIVE_VALUES,)),
    "rsqrt": Case(torch.rsqrt, (POSITIVE_VALUES,)),
    "sin": Case(torch.sin, (VALUES,)),
    "cos": Case(torch.cos, (VALUES,)),
    "pow3": Case(lambda x: x**3, (SMALL_VALUES,)),
    "pow1.7": Case(lambda x: x**1.7, (Input((1000,), 9.0, positive=True),)),
    "gelu": Case(F.gelu, (VALUES,)),
    "gelu_tanh": Case(lambda x: F.gelu(x, approximate="tanh"), (SMALL_VALUES,)),
    "silu": Case(F.silu, (SMALL_VALUES,)),
    "mish": Case(F.mish, (SMALL_VALUES,)),
    "elu": Case(F.elu, (SMALL_VALUES,)),
    "selu": Case(F.selu, (SMALL_VALUES,)),
    "softplus": Case(F.softplus, (SMALL_VALUES,)),
    "logsigmoid": Case(F.logsigmoid, (VALUES,)),
    "relu": Case(F.relu, (VALUES,)),
    "relu6": Case(F.relu6, (VALUES,)),
    "leaky_relu": Case(F.leaky_relu, (VALUES,)),
    "prelu": Case(F.prelu, (IMAGE, Input((8,)))),
    "hardswish": Case(F.hardswish, (SMALL_VALUES,)),
    "hardsigmoid": Case(F.hardsigmoid, (SMALL_VALUES,)),
    "glu": Case(F.glu, (ROWS,)),
    "div": Case(torch.div, (VALUES, Input((4000,), 3.0))),
    "div7": Case(lambda x: x / 7, (VALUES,)),
    "addcmul": Case(lambda a, b: torch.addcmul(a, a, b, value=0.3), (SMALL_VALUES, SMALL_VALUES)),
    "lerp": Case(lambda a, b: torch.lerp(a, b, 0.1), (SMALL_VALUES, SMALL_VALUES)),
    "maximum": Case(torch.maximum, (VALUES, Input((4000,), 9.0))),
    "clamp": Case(lambda x: x.clamp(-2, 3), (VALUES,)),
    "sum": Case(lambda x: x.sum(0), (Input((9000, 3)),)),
    "sum_long": Case(lambda x: x.sum(), (Input((200_000,)),)),
    "mean": Case(lambda x: x.mean((0, 2)), (ROWS,)),
    "var": Case(lambda x: x.var(1), (ROWS,)),
    "std": Case(lambda x: x.std(1), (ROWS,)),
    "norm": Case(lambda x: x.norm(dim=1), (ROWS,)),
    "cumsum": Case(lambda x: x.cumsum(1), (LOGITS,)),
    "amax": Case(lambda x: x.amax(1), (ROWS,)),
    "max": Case(lambda x: x.max(1)[0], (ROWS,)),
    "softmax": Case(lambda x: x.softmax(-1), (LOGITS,)),
    "log_softmax": Case(lambda x: x.log_softmax(-1), (LOGITS,)),
    "mm": Case(torch.mm, (Input((50, 100)), Input((100, 40)))),
    "mm_long": Case(torch.mm, (Input((8, 20_000)), Input((20_000, 6)))),
    "bmm": Case(torch.bmm, (Input((6, 30, 40)), Input((6, 40, 20)))),
    "linear": Case(F.linear, (ROWS, Input((20, 96)), Input((20,)))),
    "conv1d": Case(lambda x, w: F.conv1d(x, w, None, 2, 2), (SIGNAL, Input((10, 12, 5)))),
    "conv2d": Case(lambda x, w: F.conv2d(x, w, None, 1, 2, 2), (IMAGE, Input((6, 8, 3, 3)))),
    "conv2d_groups": Case(
        lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 4), (IMAGE, Input((12, 2, 3, 3)))
    ),
    "conv3d": Case(F.conv3d, (Input((2, 3, 6, 7, 5)), Input((4, 3, 2, 3, 2)), Input((4,)))),
    "conv_transpose1d": Case(
        lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, 1), (SIGNAL, Input((12, 7, 4)))
    ),
    "conv_transpose2d": Case(
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, 2), (IMAGE, Input((8, 3, 3, 3)))
    ),
    "layer_norm": Case(
        lambda x, w, b: F.layer_norm(x, (96,), w, b), (ROWS, Input((96,)), Input((96,)))
    ),
    "rms_norm": Case(lambda x, w: F.rms_norm(x, (96,), w), (ROWS, Input((96,)))),
    "batch_norm": Case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        (IMAGE, Input((8,)), Input((8,))),
    ),
    "group_norm": Case(lambda x, w, b: F.group_norm(x, 4, w, b), (IMAGE, Input((8,)), Input((8,)))),
    "instance_norm": Case(F.instance_norm, (IMAGE,)),
    "max_pool1d": Case(lambda x: F.max_pool1d(x, 3, 2, 1), (SIGNAL,)),
    "max_pool2d": Case(lambda x: F.max_pool2d(x, 3, 2, 1), (IMAGE,)),
    "avg_pool1d": Case(lambda x: F.avg_pool1d(x, 3, 2, 1), (SIGNAL,)),
    "avg_pool2d": Case(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (IMAGE,)),
    "adaptive_avg_pool1d": Case(lambda x: F.adaptive_avg_pool1d(x, 7), (SIGNAL,)),
    "adaptive_avg_pool2d": Case(lambda x: F.adaptive_avg_pool2d(x, (5, 4)), (IMAGE,)),
    "adaptive_max_pool2d": Case(lambda x: F.adaptive_max_pool2d(x, (5, 4)), (IMAGE,)),
    "attention": Case(F.scaled_dot_product_attention, (Input((2, 3, 9, 8)),) * 3),
    "attention_causal": Case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (Input((2, 3, 9, 8)),) * 3,
    ),
    "embedding": Case(lambda w: F.embedding(make_indices(w.new_zeros(60)), w), (Input((9, 6)),)),
    "index_add": Case(
        lambda x, y: x.index_add(0, make_indices(y), y), (Input((9, 6)), Input((60, 6)))
    ),
    "cross_entropy": Case(lambda x: F.cross_entropy(x, make_labels(x)), (LOGITS,)),
    "cross_entropy_smooth": Case(
        lambda x: F.cross_entropy(x, make_labels(x), label_smoothing=0.1), (LOGITS,)
    ),
    "cross_entropy_weighted": Case(
        lambda x: F.cross_entropy(x, make_labels(x), weight=torch.ones_like(x[0]) * 0.3), (LOGITS,)
    ),
    "bce_logits": Case(
        lambda x: F.binary_cross_entropy_with_logits(
            x, make_targets(x), pos_weight=x[0].detach().abs()
        ),
        (LOGITS,),
    ),
    "bce": Case(lambda x: F.binary_cross_entropy(x, make_targets(x)), (Input((40, 30), 0.4, 0.5),)),
    "mse": Case(F.mse_loss, (LOGITS, LOGITS)),
    "l1": Case(F.l1_loss, (LOGITS, LOGITS)),
    "huber": Case(F.huber_loss, (LOGITS, LOGITS)),
    "smooth_l1": Case(lambda a, b: F.smooth_l1_loss(a, b, beta=0.7), (LOGITS, LOGITS)),
}
