"""What portable arithmetic does with every aten overload: replace, run as it is, or refuse.

`REGISTRY` maps an overload, written as torch does (``aten::sum.dim_IntList``), to its
implementation, which takes exactly the overload's arguments. Overloads that write their result into
a tensor (``add_``, ``out=``) or go over lists (``_foreach_add``) are not listed: `find_rule` finds
the listed overload that computes the same values. An overload that is neither listed here nor made
of others by torch itself is refused, whatever other overloads its op has.
"""

from enum import Enum
from typing import Any, NamedTuple

import torch

from seedless.portable.ops import (
    activation,
    adaptive_pooling,
    convolution,
    ctc,
    elementwise,
    embedding_bag,
    grid_sampling,
    loss,
    norm,
    optimizer,
    padding,
    pooling,
    powers,
    recurrent,
    reductions,
    resize,
    scatter_write,
    selection,
    vector_norms,
)
from seedless.portable.ops.elementwise import Implementation
from seedless.portable.refusal import ADVICE, RANDOM, SCALING, refuse

REGISTRY: dict[str, Implementation] = {
    **elementwise.IMPLEMENTATIONS,
    **activation.IMPLEMENTATIONS,
    **reductions.IMPLEMENTATIONS,
    **norm.IMPLEMENTATIONS,
    **convolution.IMPLEMENTATIONS,
    **pooling.IMPLEMENTATIONS,
    **adaptive_pooling.IMPLEMENTATIONS,
    **loss.IMPLEMENTATIONS,
    **ctc.IMPLEMENTATIONS,
    **optimizer.IMPLEMENTATIONS,
    **padding.IMPLEMENTATIONS,
    **resize.IMPLEMENTATIONS,
    **grid_sampling.IMPLEMENTATIONS,
    **embedding_bag.IMPLEMENTATIONS,
    **selection.IMPLEMENTATIONS,
    **recurrent.IMPLEMENTATIONS,
    **powers.IMPLEMENTATIONS,
    **vector_norms.IMPLEMENTATIONS,
    **scatter_write.IMPLEMENTATIONS,
}

# Overloads of registered ops that have no portable form, with what to use instead.
_REDUCE = "portable scatter writes and does not reduce; use scatter_add"
_TYPED = "leave out_dtype out: portable products have the type of their operands"
_VEC_OUT = "leave out= out, or name the size of the result and no scale factors"
REFUSED: dict[str, str] = {
    "aten::upsample_nearest2d.vec_out": _VEC_OUT,
    "aten::upsample_bilinear2d.vec_out": _VEC_OUT,
    "aten::scatter.reduce": _REDUCE,
    "aten::scatter.value_reduce": _REDUCE,
    "aten::mm.dtype": _TYPED,
    "aten::bmm.dtype": _TYPED,
    "aten::addmm.dtype": _TYPED,
    "aten::baddbmm.dtype": _TYPED,
    "aten::polygamma_": "its arguments have another order in place; use torch.polygamma",
}


def name_op(overload: str) -> str:
    """Return the op of an overload: ``aten::sum.dim_IntList`` is one of ``sum``."""
    return overload.partition("::")[2].partition(".")[0]


REPLACED = frozenset(map(name_op, REGISTRY))

# Overloads that sum: float64 operands are refused, since a grid of 23 or 36 bits is coarser. These
# ops of the families that sum do not, or not on a grid:
_NO_GRID = "amax amin max min argmax argmin aminmax index_put _index_put_impl im2col col2im"
_SUMMING = (
    *(reductions, norm, convolution, padding, resize, embedding_bag, vector_norms),
    grid_sampling,
)
FLOAT32_ONLY = frozenset(
    overload
    for module in _SUMMING
    for overload in module.IMPLEMENTATIONS
    if name_op(overload) not in _NO_GRID.split()
) | {"aten::logsumexp"}

# Ops that run as they are, in all their overloads: they move, compare, make or round values in one
# correctly rounded step.
_MOVING = """
    view _unsafe_view reshape _reshape_alias as_strided alias detach t transpose permute expand
    squeeze unsqueeze slice select split split_with_sizes unsafe_split unsafe_split_with_sizes
    unsafe_chunk chunk unbind unfold diagonal diagonal_copy movedim broadcast_tensors cat stack
    clone copy contiguous _to_copy to lift lift_fresh lift_fresh_copy flip roll repeat
    repeat_interleave constant_pad_nd slice_backward select_backward slice_scatter select_scatter
    diagonal_backward diag_embed tril triu
    pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle is_pinned _pin_memory
    record_stream
"""
_CREATING = """
    empty empty_like empty_strided new_empty new_empty_strided new_zeros new_ones new_full zeros
    zeros_like ones ones_like full full_like fill zero scalar_tensor eye
"""
_CHOOSING = """
    where masked_fill masked_select masked_scatter nonzero index _unsafe_index index_select
    index_fill gather take embedding
"""
_COMPARING = """
    eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or
    bitwise_not bitwise_xor isnan isinf isfinite isposinf isneginf signbit heaviside any all equal
    _is_any_true _is_all_true count_nonzero is_same_size result_type _local_scalar_dense
    _assert_async _assert_scalar
"""
_ROUNDING = "mul neg abs sign sgn floor ceil trunc frac nan_to_num"
COMPUTING = frozenset(_ROUNDING.split())  # the exact ops whose results a checksum covers
EXACT = frozenset(f"{_MOVING} {_CREATING} {_CHOOSING} {_COMPARING} {_ROUNDING}".split())

# Ops that run as they are on integers alone.
_COUNTING = """
    remainder fmod bitwise_left_shift bitwise_right_shift __lshift__ __rshift__
    __and__ __or__ __xor__ prod bincount cumprod searchsorted bucketize
"""
INTEGER = frozenset(_COUNTING.split())

# Ops by which torch asks on a GPU whether a vendor's library should compute. Always answered no.
ASKING = frozenset(["_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"])


class Kind(Enum):
    """How an overload that is not in `REGISTRY` is computed."""

    IN_PLACE = "by a registered overload whose result is written into the first argument"
    OUT = "by a registered overload whose results are written into the arguments named for them"
    EACH = "tensor by tensor of its lists"
    EXACT = "as it is"
    INTEGER = "as it is, where no argument is real"
    PARTS = "as the ops it is made of"
    NO = "not at all: the answer is False"


class Rule(NamedTuple):
    """How an overload is computed, the registered overload that does it, and where to write."""

    kind: Kind
    overload: str = ""
    outputs: tuple[str, ...] = ()


RULES: dict[str, Rule] = {}  # what `find_rule` found so far, by overload


def find_rule(func: Any) -> Rule:
    """Return how an overload that is not in `REGISTRY` is computed, or refuse it."""
    overload = func.name()
    if overload not in RULES:
        RULES[overload] = _derive_rule(func)
    return RULES[overload]


def _derive_rule(func: Any) -> Rule:
    overload, op = func.name(), name_op(func.name())
    in_place = op.endswith("_") and not op.endswith("__")
    base = op[:-1] if in_place else op
    outputs = tuple(argument.name for argument in func._schema.arguments if argument.is_out)
    if overload.startswith("profiler::"):
        return Rule(Kind.EXACT)
    if overload.startswith(("c10d::", "_c10d_functional::")):
        raise refuse(overload, ADVICE["collective"])
    if not overload.startswith(("aten::", "prims::")):
        raise refuse(overload, ADVICE["unknown"])
    if overload in REFUSED:
        raise refuse(overload, REFUSED[overload])
    if op.startswith("_foreach_"):
        return Rule(Kind.EACH, _find_element(func, base.removeprefix("_foreach_")))
    if base in REPLACED:
        same = _find_functional(base, func._schema)
        if same in REFUSED:
            raise refuse(overload, REFUSED[same])
        if same and (in_place or outputs):
            return Rule(Kind.IN_PLACE if in_place else Kind.OUT, same, outputs)
    if base in EXACT or op in EXACT:
        return Rule(Kind.EXACT)
    if base in INTEGER:
        return Rule(Kind.INTEGER)
    if base in ASKING:
        return Rule(Kind.NO)
    if base in SCALING:
        raise refuse(overload, ADVICE["scaler"])
    if base in RANDOM:
        raise refuse(overload, ADVICE["random"])
    if func._can_decompose():
        return Rule(Kind.PARTS)
    raise refuse(overload, ADVICE["unknown"])


def _find_functional(op: str, schema: Any) -> str | None:
    """Return the listed overload of ``op`` with a schema's arguments, its outputs left out."""

    packet = getattr(torch.ops.aten, op)
    for overload in (getattr(packet, name) for name in packet.overloads()):
        listed = overload.name() in REGISTRY or overload.name() in REFUSED
        if listed and _describe(overload._schema) == _describe(schema):
            return str(overload.name())
    return None


def _describe(schema: Any) -> list[tuple[str, str]]:
    """Return name and type of what an op computes from: not its outputs, nor their device."""
    names = [argument.name for argument in schema.arguments]
    makes_a_tensor = {"dtype", "layout", "device", "pin_memory"}
    left_out = makes_a_tensor if makes_a_tensor <= set(names) else set()
    return [
        (one.name, str(one.type))
        for one in schema.arguments
        if not one.is_out and one.name not in left_out
    ]


# The overloads of an op that a foreach op's overload may apply to each tensor: the first that is
# registered. The only overload of an op has no name.
_ELEMENTS = {
    "": ("",),
    "Tensor": (".Tensor",),
    "List": (".Tensor", ".Tensor_Tensor", ""),
    "Scalar": (".Tensor_Scalar", ".Scalar", ""),
    "ScalarList": (".Tensor_Scalar", ".Scalar", ""),
}


def _find_element(func: Any, op: str) -> str:
    """Return the registered overload, or the exact op, that a foreach op applies to each tensor."""
    names = _ELEMENTS.get(func._schema.overload_name, ())
    if op == "norm" and names:
        return "aten::linalg_vector_norm"
    for name in names:
        if f"aten::{op}{name}" in REGISTRY:
            return f"aten::{op}{name}"
    if op in EXACT and names:
        return f"aten::{op}"
    raise refuse(func.name(), ADVICE["unknown"])
