"""Vector norms, variances, and weights as length times direction (nn.utils.weight_norm).

Law: sums of squares are exact sums in float64; roots and quotients are computed in float64, and the
result is rounded once. Weight norm is w = v (g / |v|) (Salimans & Kingma, 2016), with |v| saved in
float32 for its gradient.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.exact.elementary import root
from seedless.portable.exact.sums import count_addends, divide, list_axes, total
from seedless.portable.ops.elementwise import Implementation
from seedless.portable.ops.norm import moments


def vector_norm(
    x: Tensor,
    ord: float = 2,  # noqa: A002  # aten's name
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return the 2-norm, the 1-norm or the largest magnitude (``ord`` inf) over ``dim``."""
    dims, magnitude = list_axes(x, dim), x.to(torch.float64).abs()
    if ord == 2:
        out = root(total(magnitude * magnitude, dims, keepdim))
    elif ord == 1:
        out = total(magnitude, dims, keepdim)
    elif ord == float("inf"):
        out = magnitude.amax(dims, keepdim) if dims else magnitude
    else:
        raise NumericsError(f"portable arithmetic has norms of order 1, 2 and inf; got {ord!r}")
    return out.to(dtype or x.dtype)


def norm(
    x: Tensor,
    p: float | None = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return aten.norm: the vector norm, of order 2 where none is named."""
    return vector_norm(x, 2 if p is None else p, dim, keepdim, dtype)


def var_mean(
    x: Tensor, dim: Sequence[int] | None = None, correction: float | None = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Return variance and mean over ``dim``; a sum of squares is divided by n - correction."""
    dims = list_axes(x, dim)
    centre, variance = moments(x, dims)
    size = float(count_addends(x, dims))
    degrees_of_freedom = max(size - (1 if correction is None else correction), 0.0)
    variance = divide(variance * size, degrees_of_freedom)
    pair = (variance, centre) if keepdim else (variance.squeeze(dims), centre.squeeze(dims))
    return pair[0].to(x.dtype), pair[1].to(x.dtype)


def std(
    x: Tensor, dim: Sequence[int] | None = None, correction: float | None = 1, keepdim: bool = False
) -> Tensor:
    """Return the standard deviation over ``dim``: the root of the variance rounded to float32."""
    return root(var_mean(x, dim, correction, keepdim)[0].to(torch.float64)).to(x.dtype)


def _list_other_axes(v: Tensor, dim: int) -> list[int]:
    return [axis for axis in range(v.ndim) if axis != dim % v.ndim]


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Return the weight like v, and the lengths |v| over every axis but ``dim``."""
    wide = v.to(torch.float64)
    length = root(total(wide * wide, _list_other_axes(v, dim), True))
    return (wide * (g.to(torch.float64) / length)).to(v.dtype), length.to(g.dtype)


def weight_norm_backward(
    grad: Tensor, v: Tensor, g: Tensor, lengths: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Return the gradients of v and g, with s the sum of grad v over every axis but ``dim``.

    They are (g / |v|) (grad - v s / |v|^2) and s / |v|.
    """
    wide, length = v.to(torch.float64), lengths.to(torch.float64)
    inner = grad.to(torch.float64)
    s = total(inner * wide, _list_other_axes(v, dim), True)
    of_v = (inner - wide * (s / (length * length))) * (g.to(torch.float64) / length)
    return of_v.to(v.dtype), (s / length).to(g.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::linalg_vector_norm": vector_norm,
    "aten::norm.Scalar": norm,
    "aten::norm.ScalarOpt_dim": norm,
    "aten::norm.ScalarOpt_dtype": lambda x, p, dtype: norm(x, p, dtype=dtype),
    "aten::norm.ScalarOpt_dim_dtype": norm,
    "aten::var_mean.correction": var_mean,
    "aten::var.correction": lambda *args, **options: var_mean(*args, **options)[0],
    "aten::std.correction": std,
    "aten::_weight_norm_interface": weight_norm,
    "aten::_weight_norm_interface_backward": weight_norm_backward,
}
