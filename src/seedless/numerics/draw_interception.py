"""Inside a converted model, torch's draws become functions of sample, epoch, layer and element.

Law: a function mode sees every call of a torch function that a module makes. Dropout, and
draws from distributions (`distribution_draws`), are computed from the keys of the batch. A call
that would draw otherwise is refused, with its module and line. Calls with a generator of their own
are left alone.
"""

import threading
import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from seedless.core.errors import NumericsError
from seedless.numerics.attention_dropout import attend
from seedless.numerics.distribution_draws import HANDLERS, Arguments, Handler
from seedless.numerics.draw_line import find_line
from seedless.numerics.dropout import check_probability
from seedless.numerics.forward_calls import find_call, number_draw
from seedless.numerics.recurrent_dropout import is_packed, run_layers
from seedless.numerics.sample_draws import drop


class DrawInterception(TorchFunctionMode):
    """The function mode, active while a converted model computes in training mode."""

    def __torch_function__(
        self, func: Any, types: Any, args: Arguments = (), kwargs: Any = None
    ) -> Any:
        """Run one torch function: as it is, by the keys of the batch, or refuse it."""
        kwargs = kwargs or {}
        handle, copied = _HANDLERS.get(func), _COPIES.get(func)
        is_left_alone = kwargs.get("generator") is not None or find_call().kept
        if copied is not None and not is_left_alone:
            return self.run_seen(copied, args, kwargs)
        if handle is None or is_left_alone:
            return func(*args, **kwargs)
        return _run_uncompiled(handle, func, args, kwargs)

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # untyped in torch
    def run_seen(self, function: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """Run a copy of a torch function with its own calls seen by this mode."""
        call = find_call()
        before = call.axis
        if function is _ATTENTION:
            call.axis = 0
        try:
            with self:
                return function(*args, **kwargs)
        finally:
            call.axis = before


@torch.compiler.disable  # type: ignore[untyped-decorator]  # untyped in torch
def _run_uncompiled(handle: Handler, func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """Run a handler as it is, also where torch.compile runs the rest of a module."""
    return handle(func, args, kwargs)


class _Entered(threading.local):
    """The mode that a thread is in."""

    mode: DrawInterception | None = None


_ENTERED = _Entered()


def begin_interception() -> None:
    """Begin to see the calls of this thread, until `end_interception`."""
    _ENTERED.mode = DrawInterception()
    _ENTERED.mode.__enter__()  # type: ignore[no-untyped-call]  # untyped in torch


def end_interception() -> None:
    """Stop seeing calls."""
    mode, _ENTERED.mode = _ENTERED.mode, None
    if mode is not None:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # untyped in torch


def _copy_without_dispatch(function: Any) -> Any:
    """Return a copy of a Python function of torch that does not give itself to the mode again."""
    asked = dict.fromkeys(("has_torch_function", "has_torch_function_unary"), lambda _: False)
    copied = types.FunctionType(
        function.__code__,
        {**function.__globals__, **asked},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


_ATTENTION = _copy_without_dispatch(F.multi_head_attention_forward)
_COPIES: dict[Any, Any] = {
    F.multi_head_attention_forward: _ATTENTION,
    F.gumbel_softmax: _copy_without_dispatch(F.gumbel_softmax),
}


def _make_dropout(
    *, features: bool = False, alpha: bool = False, in_place: bool = False
) -> Handler:
    """Return the handler of a dropout function, whose arguments are (input, p, train, inplace)."""

    def handle(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        x, p, train, inside = _read_dropout(*args, **kwargs)
        check_probability(p)
        if not train or p == 0:
            return x
        call = find_call()
        layer = number_draw(call)
        out = drop(x, p, layer=layer, axis=call.axis, features=features, alpha=alpha)
        return x.copy_(out) if in_place or inside else out

    return handle


def _read_dropout(
    input: Tensor,  # noqa: A002  # torch's names
    p: float | None = None,
    training: bool | None = None,
    inplace: bool = False,
    *,
    train: bool | None = None,
) -> tuple[Tensor, float, bool, bool]:
    """Return input, rate, mode and place of any of torch's dropout functions."""
    trained = training if train is None else train
    return input, 0.5 if p is None else p, trained is not False, inplace


def _handle_native_dropout(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    x, p, train, _ = _read_dropout(*args, **kwargs)
    if not train or p == 0:
        return func(x, p, train)
    call = find_call()
    layer = number_draw(call)
    kept = drop(torch.ones_like(x), p, layer=layer, axis=call.axis)
    return x * kept, kept != 0


def _handle_attention(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    p = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
    if p == 0:
        return func(*args, **kwargs)
    check_probability(p)
    return attend(*args, **kwargs, layer=number_draw(find_call()))


def _handle_recurrent(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    layers, p, train = args[5:8] if is_packed(args) else args[4:7]
    if not train or p == 0 or layers == 1:
        return func(*args, **kwargs)
    check_probability(p)
    call = find_call()
    return run_layers(func, args, call.inputs, lambda: number_draw(call))


def _refuse_in_training(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """rrelu(input, lower, upper, training): it draws in training alone."""
    if kwargs.get("training", args[3] if len(args) > 3 else False):
        _refuse(func, args, kwargs)
    return func(*args, **kwargs)


def _refuse(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    name = getattr(func, "__name__", str(func))
    raise NumericsError(
        f"module {find_call().name!r} calls {name} at {find_line()}, which draws from torch's "
        "generator, and has no form that is drawn by sample: make these numbers outside the "
        "model and pass them in, draw them from torch.rand, randn or bernoulli, or name the "
        "module in seedless.convert(model, keep=[...]) to leave its draws as they are"
    )


_TENSOR_DRAWS = "random_ geometric_ cauchy_ log_normal_ multinomial"
_TORCH_DRAWS = "randint randint_like randperm multinomial poisson binomial"
_FUNCTIONAL_DRAWS = """
    fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices
"""
_ELEMENTS = _make_dropout()
_ELEMENTS_IN_PLACE = _make_dropout(in_place=True)
_FEATURES = _make_dropout(features=True)
_FEATURES_IN_PLACE = _make_dropout(features=True, in_place=True)
_ALPHA = _make_dropout(alpha=True)
_ALPHA_IN_PLACE = _make_dropout(alpha=True, in_place=True)
_FEATURE_ALPHA = _make_dropout(features=True, alpha=True)
_FEATURE_ALPHA_IN_PLACE = _make_dropout(features=True, alpha=True, in_place=True)

_HANDLERS: dict[Any, Handler] = {
    **{getattr(Tensor, name): _refuse for name in _TENSOR_DRAWS.split()},
    **{getattr(torch, name): _refuse for name in _TORCH_DRAWS.split()},
    **{getattr(F, name): _refuse for name in _FUNCTIONAL_DRAWS.split()},
    F.rrelu: _refuse_in_training,
    torch.rrelu: _refuse_in_training,
    torch.rrelu_: _refuse_in_training,
    F.dropout: _ELEMENTS,
    torch.dropout: _ELEMENTS,
    torch.dropout_: _ELEMENTS_IN_PLACE,
    F.dropout1d: _FEATURES,
    F.dropout2d: _FEATURES,
    F.dropout3d: _FEATURES,
    torch.feature_dropout: _FEATURES,
    torch.feature_dropout_: _FEATURES_IN_PLACE,
    F.alpha_dropout: _ALPHA,
    torch.alpha_dropout: _ALPHA,
    torch.alpha_dropout_: _ALPHA_IN_PLACE,
    F.feature_alpha_dropout: _FEATURE_ALPHA,
    torch.feature_alpha_dropout: _FEATURE_ALPHA,
    torch.feature_alpha_dropout_: _FEATURE_ALPHA_IN_PLACE,
    torch.native_dropout: _handle_native_dropout,
    F.scaled_dot_product_attention: _handle_attention,
    torch.lstm: _handle_recurrent,
    torch.gru: _handle_recurrent,
    torch.rnn_tanh: _handle_recurrent,
    torch.rnn_relu: _handle_recurrent,
    **HANDLERS,
}
