"""What each registered overload and its reference are given: every overload at least once.

A last argument that is a dict holds arguments by name.
"""

import math

import numpy as np
import torch

from seedless.numerics.counter_random import draw_uniform
from seedless.portable.ops.registry import REGISTRY


def some(*shape, name="a", scale=2.0, shift=0.0):
    values = (draw_uniform(0, name, math.prod(shape)) * 2 - 1) * scale + shift
    return torch.from_numpy(values.astype(np.float32)).view(shape)


def whole(*values):
    return torch.tensor(values)


A, B = some(40), some(40, name="b")
PLUS = some(40, scale=2.0, shift=2.01)
WIDE = torch.cat([some(20, scale=30.0), some(10, scale=1e-6), torch.tensor([0.0, 6.5, -6.5])])
G, T = some(3, 4, 5), some(3, 4, 5, name="t")
IMAGE, GRID = some(2, 3, 5, 4), some(2, 3, 5, 4, name="g")
VOLUME = some(1, 2, 4, 3, 4)
HALF = some(3, 4, 5, scale=0.45, shift=0.5)
LABELS = whole(1, 3, 2)
ROW = some(5, name="w", shift=1.0)
FAST = (  # functions of one array
    *("exp", "expm1", "erf", "sigmoid", "tanh", "sin", "cos", "exp2", "square", "relu", "round"),
    *("gelu", "silu", "mish", "hardswish", "hardsigmoid", "elu", "celu", "leaky_relu", "hardtanh"),
    *("hardshrink", "softshrink", "softplus"),
)
PAIRS = (  # of two: mostly a gradient and a value
    *("add.Tensor", "sub.Tensor", "rsub.Tensor", "div.Tensor", "maximum", "minimum"),
    *(
        "silu_backward",
        "mish_backward",
        "sigmoid_backward",
        "tanh_backward",
        "gelu_backward",
        "hardswish_backward",
    ),
    *("hardsigmoid_backward", "_prelu_kernel", "logaddexp"),
)
CASES = [
    *((name, WIDE) for name in FAST),
    *((name, A, B) for name in PAIRS),
    *((name, PLUS) for name in ("log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal")),
    ("sqrt", torch.tensor([0.0, 1e-45, 3e38, 2.0])),
    ("log", torch.tensor([1e-45, 1e-38, 3e38, 1.0])),
    ("sin", torch.tensor([1e10, -3e38, 1e-45, 16367173.0])),
    ("cos", torch.tensor([1e10, -3e38, 1e-45, 16367173.0])),
    ("gelu", WIDE, "tanh"),
    ("gelu_backward", A, B, "tanh"),
    ("add.Tensor", A, B, 0.3),
    ("add.Scalar", A, 0.3),
    ("sub.Tensor", A, B, 0.3),
    ("sub.Scalar", A, 0.3),
    ("rsub.Tensor", A, B, 0.3),
    ("rsub.Scalar", A, 0.75),
    ("div.Scalar", A, 1.75),
    ("div.Tensor_mode", A, B, {"rounding_mode": None}),
    ("div.Scalar_mode", A, 1.75, {"rounding_mode": None}),
    ("atan", WIDE),
    *((name, some(40, scale=0.999)) for name in ("asin", "acos")),
    ("floor_divide", A, B),
    ("floor_divide.Scalar", A * 9, 0.3),
    *((name, some(40, shift=2.01)) for name in ("lgamma", "digamma")),
    *((name, some(40, scale=20.0)) for name in ("lgamma", "digamma")),
    ("lgamma", torch.tensor([1e-45, 3e38, 1.0000001, 1.9999999, 0.5, 1.5, 2.5, 8.0, -2.4570246])),
    ("digamma", torch.tensor([1e-30, 3e38, 1.4616321, 8.0])),
    *(("polygamma", n, some(40, scale=20.0)) for n in (0, 1)),
    ("pow.Tensor_Tensor", PLUS, A),
    ("pow.Tensor_Scalar", PLUS, 1.7),
    ("pow.Scalar", 1.7, A),
    ("pow.Tensor_Tensor", A, torch.round(B * 3)),
    ("xlogy.Tensor", A, PLUS),
    ("xlogy.Scalar_Other", A, 1.7),
    ("xlogy.Scalar_Self", 1.7, PLUS),
    ("addcmul", A, B, PLUS, 0.3),
    ("addcdiv", A, B, PLUS, 0.3),
    ("lerp.Scalar", A, B, 0.3),
    ("lerp.Tensor", A, B, HALF.flatten()[:40]),
    ("clamp", A, -0.5, 0.7),
    ("clamp.Tensor", A, B, PLUS),
    ("clamp_min.Tensor", A, B),
    ("clamp_max.Tensor", A, B),
    ("clamp_min", A, 0.1),
    ("clamp_max", A, 0.1),
    ("softplus_backward", A, B, 1.5, 2.0),
    ("elu_backward", A, 1.2, 1.1, 0.9, False, B),
    ("elu_backward", A, 1.2, 1.1, 0.9, True, B),
    ("leaky_relu_backward", A, B, 0.02, False),
    ("hardtanh_backward", A, B, -1.0, 1.0),
    ("hardshrink_backward", A, B, 0.5),
    ("softshrink_backward", A, B, 0.5),
    ("threshold", A, 0.1, 0.7),
    ("threshold_backward", A, B, 0.1),
    ("log_sigmoid_forward", WIDE),
    ("log_sigmoid_backward", A, B, A),
    ("_prelu_kernel_backward", A, B, PLUS),
    ("glu", some(3, 6), 1),
    ("glu_backward", some(3, 3), some(3, 6), 1),
    # sums, products, places
    ("sum.dim_IntList", G, [0, 2]),
    ("sum", G * 1e-40),
    ("mean", G),
    ("mean.dim", G, [1], True),
    ("nansum", torch.where(G > 1.5, math.nan, G), [1]),
    ("trace", some(4, 4)),
    ("cumsum", G, 1),
    ("logsumexp", G, [1]),
    ("mm", some(3, 200), some(200, 2, name="b")),
    ("bmm", some(2, 3, 7), some(2, 7, 2, name="b")),
    ("_grouped_mm", some(5, 7), some(3, 7, 2, name="b"), whole(2, 2, 4)),
    ("_grouped_mm", some(3, 2, 7), some(7, 4, name="b"), whole(1, 3, 4)),
    ("_grouped_mm", some(2, 7), some(7, 3, name="b"), whole(3, 7)),
    ("mv", some(3, 7), some(7)),
    *((name, some(9), some(9, name="b")) for name in ("dot", "vdot")),
    ("addmm", some(3, 2), some(3, 7), some(7, 2), 0.3, 0.7),
    ("baddbmm", some(2, 3, 2), some(2, 3, 7), some(2, 7, 2), 0.3, 0.7),
    ("addmv", some(3), some(3, 7), some(7), 0.3, 0.7),
    *((name, G, [1]) for name in ("amax", "amin")),
    *((name, torch.round(G), 1) for name in ("max.dim", "min.dim", "argmax", "argmin")),
    *((name, G) for name in ("max", "min")),
    ("aminmax", G),
    ("index_add", some(4, 3), 0, whole(1, 1, 3), some(3, 3, name="b"), 0.5),
    ("scatter_add", some(4, 3), 0, whole([1, 1, 3], [1, 0, 3]), some(2, 3, name="b")),
    ("scatter.value", some(4, 3), 0, whole([1, 2, 3]), 0.7),
    ("scatter.src", some(4, 3), 0, whole([1, 2, 3]), some(1, 3, name="b")),
    ("scatter.src", some(4, 3), 0, whole([1, 2], [3, 2], [1, 0]), some(3, 2, name="b")),
    ("index_copy", some(2, 4, 3), 1, whole(1, 3, 1), some(2, 3, 3, name="b")),
    *(
        (name, some(4, 3), [whole(1, 1, 3)], some(3, 3, name="b"), True)
        for name in ("index_put", "_index_put_impl", "_unsafe_index_put")
    ),
    ("index_put", some(4, 3), [whole([1, 0], [3, 1])], some(2, 2, 3, name="b"), True),
    ("index_put", some(4), [whole([[1, 0], [3, 1]])], some(1, 2, 2, name="b"), True),
    ("index_put", some(4, 3), [whole(1, 0, 3)], some(3, 3, name="b")),
    ("index_put", some(4, 3), [whole(1, 3, 1)], some(3, 3, name="b")),
    ("put", some(4, 3), whole(1, -5, 7, 1), some(4, name="b")),
    ("put", some(4, 3), whole(1, 1, 7), some(3, name="b"), True),
    ("embedding_dense_backward", some(2, 4, 3), whole([0, 1, 1, 2], [4, 4, 1, 0]), 5, 2, False),
    *(
        (name, some(5, 3), whole(0, 1, 1, 2, 4), whole(0, 2, 2), False, mode, False, None, False, 2)
        for name in ("_embedding_bag", "_embedding_bag_forward_only")
        for mode in (0, 1)
    ),
    (
        *("_embedding_bag_dense_backward", some(3, 3), whole(0, 1, 1, 2, 4), whole(0, 0, 2, 2, 2)),
        *(whole(2, 0, 2), whole(0), 5, False, 1, None, 2),
    ),
    (
        *("_embedding_bag_backward", some(3, 3), whole(0, 1, 1, 2, 4), whole(0, 2, 2)),
        *(whole(0, 0, 2, 2, 2), whole(2, 0, 2), whole(0), 5, False, 1, False, None, 2),
    ),
    ("unfold_backward", some(2, 3, 3), [2, 7], 1, 3, 2),
    ("histc", some(300), 7, -1.0, 1.5),
    ("histc", some(300), 7),
    ("sort", torch.round(G), 1, True),
    ("sort.stable", torch.round(G), {"stable": False, "dim": 1, "descending": True}),
    ("topk", torch.round(G), 2, 1),
    ("_pack_padded_sequence", some(3, 4, 2), whole(4, 2, 1), True),
    ("_pack_padded_sequence_backward", some(7, 2), [3, 4, 2], whole(3, 2, 1, 1), True),
    ("arange", 9),
    ("arange.start", 2, 9),
    ("arange.start_step", 2, 9, 3),
    ("round.decimals", WIDE, {"decimals": 0}),
    ("linspace", 0.1, 0.9, 7),
    ("linspace.Tensor_Tensor", torch.tensor(0.25), torch.tensor(0.75), 7),
    ("linspace.Tensor_Scalar", torch.tensor(0.25), 0.9, 7),
    ("linspace.Scalar_Tensor", 0.1, torch.tensor(0.75), 7),
    # windows
    ("convolution", some(2, 4, 7), some(6, 2, 3), some(6), [2], [1], [2], False, [0], 2),
    ("_convolution", IMAGE, some(2, 3, 2, 2), None, [1, 1], [1, 0], [1, 1], False, [0, 0], 1),
    ("convolution", some(2, 4, 5), some(4, 3, 3), some(6), [2], [1], [1], True, [1], 2),
    *(
        (
            *("convolution_backward", some(2, outer, length), some(2, inner, 5), weight, [4]),
            *([2], [1], [1], transposed, [0], 1, [True, True, True]),
        )
        for transposed, outer, inner, length, weight in (
            (False, 3, 2, 3, some(3, 2, 3)),
            (True, 2, 3, 9, some(3, 2, 3)),
        )
    ),
    ("im2col", IMAGE, [2, 3], [1, 1], [1, 0], [2, 1]),
    ("col2im", some(2, 12, 12), [5, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
    ("avg_pool1d", some(2, 3, 8), [3], [2], [1], True, True),
    ("avg_pool2d", IMAGE, [3, 2], [2, 2], [1, 1], True, False),
    ("avg_pool3d", VOLUME, [2, 2, 2]),
    *(
        ("avg_pool2d_backward", some(2, 3, 3, 3), IMAGE, [3, 2], [2, 2], [1, 1], ceil, on, None)
        for ceil in (False, True)
        for on in (False, True)
    ),
    (
        *("avg_pool3d_backward", some(1, 2, 3, 2, 3), VOLUME, [2, 2, 2], [1, 1, 1], [0, 0, 0]),
        *(False, True, 5),
    ),
    ("max_pool1d", torch.round(some(2, 3, 8)), [3], [2], [1], [1], True),
    ("max_pool2d_with_indices", torch.round(IMAGE), [3, 2], [2, 2], [1, 1], [1, 1], True),
    ("max_pool3d_with_indices", VOLUME, [2, 2, 2], [1, 1, 1]),
    ("reflection_pad1d", some(2, 5), [2, 1]),
    ("reflection_pad2d", IMAGE, [2, 1, 3, 0]),
    ("reflection_pad3d", VOLUME, [2, 1, 1, 0, 3, 1]),
    ("replication_pad1d", some(2, 5), [2, 1]),
    ("replication_pad2d", IMAGE, [2, 1, 3, 0]),
    ("replication_pad3d", VOLUME, [2, 1, 1, 0, 3, 1]),
    *(
        (f"{kind}_pad1d_backward", some(2, 8), some(2, 5), [2, 1])
        for kind in ("reflection", "replication")
    ),
    *(
        (f"{kind}_pad2d_backward", some(2, 3, 8, 7), IMAGE, [2, 1, 3, 0])
        for kind in ("reflection", "replication")
    ),
    *(
        (f"{kind}_pad3d_backward", some(1, 2, 8, 4, 7), VOLUME, [2, 1, 1, 0, 3, 1])
        for kind in ("reflection", "replication")
    ),
    ("_adaptive_avg_pool2d", IMAGE, [3, 7]),
    ("_adaptive_avg_pool3d", VOLUME, [3, 2, 5]),
    ("_adaptive_avg_pool2d_backward", some(2, 3, 3, 7), IMAGE),
    ("_adaptive_avg_pool3d_backward", some(1, 2, 3, 2, 5), VOLUME),
    ("adaptive_max_pool2d", torch.round(IMAGE), [3, 3]),
    ("adaptive_max_pool3d", VOLUME, [3, 2, 3]),
]
for n, x, size in ((1, some(2, 2, 5), [8]), (2, IMAGE, [3, 7]), (3, VOLUME, [3, 5, 4])):
    for name in (f"upsample_nearest{n}d", f"_upsample_nearest_exact{n}d"):
        grad = some(*x.shape[:2], *size, name="grad")
        CASES += [(name, x, size), (f"{name}_backward", grad, size, list(x.shape))]
        CASES += [(name, x, size, *[1.7] * n)]
for name, x, size in (
    ("upsample_linear1d", some(2, 2, 5), [8]),
    ("upsample_bilinear2d", IMAGE, [3, 7]),
    ("upsample_trilinear3d", VOLUME, [3, 5, 4]),
    ("upsample_bicubic2d", IMAGE, [3, 7]),
    ("_upsample_bilinear2d_aa", IMAGE, [2, 7]),
    ("_upsample_bicubic2d_aa", IMAGE, [2, 3]),
):
    for aligned in (False, True):
        grad = some(*x.shape[:2], *size, name="grad")
        CASES += [
            (name, x, size, aligned),
            (f"{name}_backward", grad, size, list(x.shape), aligned),
        ]
# points of a grid
for x, points, name, interpolations in (
    (some(2, 3, 4, 3), some(2, 3, 2, 2, name="p", scale=1.7), "grid_sampler_2d", (0, 1, 2)),
    (some(1, 2, 3, 2, 3), some(1, 2, 1, 3, 3, name="p", scale=1.7), "grid_sampler_3d", (0, 1)),
):
    grad = some(*x.shape[:2], *points.shape[1:-1], name="grad")
    for interpolation in interpolations:
        for padding, aligned in ((0, False), (0, True), (1, False), (2, False), (2, True)):
            options = (interpolation, padding, aligned)
            CASES += [
                (name, x, points, *options),
                (f"{name}_backward", grad, x, points, *options, [True, True]),
            ]
POINTS = some(2, 2, 3, 2, name="p", scale=1.7)
CASES += [
    ("cudnn_grid_sampler", IMAGE, POINTS),
    ("cudnn_grid_sampler_backward", IMAGE, POINTS, some(2, 3, 2, 3, name="grad")),
    *(("affine_grid_generator", some(2, 2, 3), [2, 1, 3, 4], aligned) for aligned in (False, True)),
    ("affine_grid_generator", some(1, 3, 4), [1, 1, 3, 1, 2], False),
    ("max_unpool2d", some(1, 2, 2, 2), whole([[[[0, 5], [0, 2]], [[1, 2], [3, 4]]]])[0], [2, 3]),
    (
        *("max_unpool3d", some(2, 1, 1, 2), whole([[[0, 7]]], [[[3, 3]]])),
        *([2, 2, 2], [2, 2, 2], [0, 0, 0]),
    ),
]
# norms
W, V = some(5, name="w", shift=1.0), some(5, name="v")
CHANNELS = some(3, name="w", shift=1.0), some(3, name="v")
ALL = [True, True, True]
CASES += [
    ("native_layer_norm", G, [5], W, V, 1e-5),
    ("native_layer_norm_backward", G, T, [5], some(3, 4, 1), some(3, 4, 1, name="s"), W, V, ALL),
    ("native_batch_norm", IMAGE, *CHANNELS, some(3), some(3, shift=3.0), True, 0.1, 1e-5),
    ("native_batch_norm", IMAGE, *CHANNELS, some(3), some(3, shift=3.0), False, 0.1, 1e-5),
    *(
        (
            *("native_batch_norm_backward", GRID, IMAGE, CHANNELS[0], some(3), some(3, shift=3.0)),
            *(some(3, name="c"), some(3, name="s"), training, 1e-5, ALL),
        )
        for training in (False, True)
    ),
    ("native_group_norm", some(2, 4, 5), some(4), some(4, name="v"), 2, 4, 5, 2, 1e-5),
    (
        *("native_group_norm_backward", some(2, 4, 5), some(2, 4, 5, name="t"), some(2, 2)),
        *(some(2, 2, name="s"), some(4), 2, 4, 5, 2, ALL),
    ),
    *(("linalg_vector_norm", G, order, [1]) for order in (1, 2, math.inf)),
    ("norm.Scalar", G, 1),
    ("norm.ScalarOpt_dtype", G, 2, {"dtype": torch.float32}),
    ("norm.ScalarOpt_dim", G, 2, [2], True),
    ("norm.ScalarOpt_dim_dtype", G, 2, [2], True, {"dtype": torch.float32}),
    ("var_mean.correction", G, [1]),
    ("var.correction", G, [0, 2], 0, True),
    ("std.correction", G, [1]),
    ("_weight_norm_interface", G, some(3, 1, 1), 0),
    ("_weight_norm_interface_backward", G, T, some(3, 1, 1), some(3, 1, 1, name="n"), 0),
    # losses
    ("_softmax", G, 1, False),
    ("_safe_softmax", torch.where(torch.arange(3)[:, None, None] == 1, -math.inf, G), 1),
    ("_log_softmax", G, 2, False),
    ("_softmax_backward_data", G, HALF, 1, torch.float32),
    ("_log_softmax_backward_data", G, T, 1, torch.float32),
    *(("nll_loss_forward", some(3, 5), LABELS, ROW, reduction, 2) for reduction in (0, 1, 2)),
    ("nll_loss2d_forward", some(2, 5, 2, 2), whole([[1, 2], [0, 4]], [[3, 3], [2, 1]]), ROW, 1, 2),
    ("nll_loss_backward", some(3), some(3, 5), LABELS, ROW, 0, 2, torch.tensor(0.0)),
    ("nll_loss_backward", some(1)[0], some(3, 5), LABELS, ROW, 1, 2, torch.tensor(2.3)),
    (
        *("nll_loss2d_backward", some(1)[0], some(2, 5, 2, 2)),
        *(whole([[1, 2], [0, 4]], [[3, 3], [2, 1]]), None, 1, -100, torch.tensor(8.0)),
    ),
    ("binary_cross_entropy_with_logits", G, HALF, T, HALF[0], 1),
    ("binary_cross_entropy", HALF, HALF.flip(0), T, 2),
    ("binary_cross_entropy_backward", some(1)[0], HALF, HALF.flip(0), T, 1),
    *(("mse_loss", G, T, reduction) for reduction in (0, 1, 2)),
    ("l1_loss", G, T),
    ("huber_loss", G, T, 1, 0.7),
    ("smooth_l1_loss", G, T, 2, 0.7),
    ("mse_loss_backward", some(1)[0], G, T, 1),
    ("huber_loss_backward", some(1)[0], G, T, 1, 0.7),
    ("smooth_l1_loss_backward", some(1)[0], G, T, 2, 0.7),
]
for name, place in (("max_pool2d", 2), ("max_pool3d", 3)):
    x = torch.round(IMAGE) if place == 2 else torch.round(VOLUME)
    given = ([2] * place, [1] * place, [1] * place, [1] * place, False)
    best, where = REGISTRY[f"aten::{name}_with_indices"](x, *given)
    CASES.append((f"{name}_with_indices_backward", some(*best.shape, name="g"), x, *given, where))
    best, where = REGISTRY[f"aten::adaptive_{name}"](x, [3] * place)
    CASES.append((f"adaptive_{name}_backward", some(*best.shape, name="g"), x, where))
CTC = (
    torch.log_softmax(some(7, 3, 4, scale=3.0).double(), 2).float(),
    whole([1, 2, 2], [3, 1, 0], [2, 0, 0]),
)
CTC_LENGTHS = (whole(7, 5, 3), whole(3, 2, 1))
for form in ("", ".Tensor"):
    sizes = CTC_LENGTHS if form else tuple(one.tolist() for one in CTC_LENGTHS)
    losses, alphas = REGISTRY["aten::_ctc_loss"](*CTC, *sizes)
    CASES += [
        (f"_ctc_loss{form}", *CTC, *sizes),
        (f"_ctc_loss{form}", CTC[0], whole(1, 2, 2, 3, 1, 2), *sizes, 0, True),
        (f"_ctc_loss_backward{form}", some(3), *CTC, *sizes, losses, alphas, 0),
    ]
ADAM = {"lr": 0.013, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.02, "eps": 1e-8}
SGD = {"weight_decay": 0.02, "momentum": 0.9, "lr": 0.013, "dampening": 0.1}
STEPS = [
    *(
        (name, ADAM | {"amsgrad": amsgrad, "maximize": amsgrad}, 6)
        for op in ("_fused_adam_", "_fused_adamw_")
        for name in (op, f"{op}.tensor_lr")
        for amsgrad in (False, True)
    ),
    *(
        (name, SGD | {"nesterov": on, "maximize": on, "is_first_step": not on}, 3)
        for on in (False, True)
        for name in ("_fused_sgd_", "_fused_sgd_.tensor_lr")
    ),
]
