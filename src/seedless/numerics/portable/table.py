"""Every aten op that portable arithmetic knows, by name without its overload.

`HANDLERS` replaces an op; `EXACT` ops run as they are, since they move, compare or round values in
one correctly rounded step; `INTEGER` ops run as they are on integers alone.
"""

from __future__ import annotations

from seedless.numerics.portable import (
    activation,
    arithmetic,
    conv,
    gather,
    loss,
    norm,
    optimize,
    pool,
)
from seedless.numerics.portable.arithmetic import Handler

HANDLERS: dict[str, Handler] = {
    **arithmetic.HANDLERS,
    **activation.HANDLERS,
    **gather.HANDLERS,
    **norm.HANDLERS,
    **conv.HANDLERS,
    **pool.HANDLERS,
    **loss.HANDLERS,
    **optimize.HANDLERS,
}

# Ops that reduce: float64 operands are refused, since a grid of 23 or 36 bits is coarser.
REDUCING = frozenset({**gather.HANDLERS, **norm.HANDLERS, **conv.HANDLERS}) - frozenset(
    {"amax", "amin", "max", "min", "argmax", "argmin", "index_put", "_index_put_impl"}
)

EXACT = frozenset(
    """
    view _unsafe_view reshape _reshape_alias as_strided alias detach t transpose permute expand
    squeeze unsqueeze slice select split split_with_sizes unsafe_split unsafe_chunk chunk unbind
    unfold diagonal cat stack clone copy contiguous _to_copy to lift lift_fresh lift_fresh_copy
    empty empty_like empty_strided new_empty new_empty_strided new_zeros new_ones new_full zeros
    zeros_like ones ones_like full full_like fill zero scalar_tensor arange eye tril triu where
    masked_fill masked_select nonzero index index_select gather scatter embedding flip roll repeat
    constant_pad_nd slice_backward select_backward slice_scatter select_scatter diag_embed mul neg
    abs sign sgn floor ceil round trunc eq ne lt le gt ge logical_and logical_or logical_not
    logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor isnan isinf isfinite any all equal
    _local_scalar_dense is_same_size set_ resize_ sort topk argsort one_hot index_fill index_copy
    _unsafe_index pixel_shuffle pixel_unshuffle movedim unsafe_split_with_sizes nan_to_num
    repeat_interleave is_pinned _pin_memory record_stream masked_scatter
    result_type broadcast_tensors _assert_async _assert_scalar
    """.split()
)

INTEGER = frozenset(
    """
    remainder floor_divide fmod bitwise_left_shift bitwise_right_shift __lshift__ __rshift__
    __and__ __or__ __xor__ prod bincount cumprod unique unique2 _unique2 searchsorted bucketize
    """.split()
)
