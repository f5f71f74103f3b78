"""Torch's functions that draw from a distribution, by the keys of the batch.

Each has torch's arguments, and numbers from `sample_draws` in place of a generator's.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seedless.numerics.forward_calls import find_call, number_draw
from seedless.numerics.sample_draws import (
    draw_exponential_like,
    draw_normal_like,
    draw_uniform_like,
)

Arguments = tuple[Any, ...]
Handler = Callable[[Any, Arguments, dict[str, Any]], Any]


def _handle_rand(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """torch.rand and torch.rand_like: numbers in [0, 1) into what torch.empty returns."""
    make = torch.empty_like if func is torch.rand_like else torch.empty
    out = make(*args, **{name: value for name, value in kwargs.items() if name != "generator"})
    return _fill_uniform(out, 0.0, 1.0)


def _handle_uniform(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """Tensor.uniform_(from, to)."""
    low = args[1] if len(args) > 1 else kwargs.get("from", 0.0)
    high = args[2] if len(args) > 2 else kwargs.get("to", 1.0)
    return _fill_uniform(args[0], low, high)


def _fill_uniform(out: Tensor, low: float, high: float) -> Tensor:
    call = find_call()
    with torch.no_grad():
        numbers = draw_uniform_like(out, layer=number_draw(call), axis=call.axis)
        return out.copy_(numbers * (high - low) + low)


def _handle_randn(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """torch.randn and torch.randn_like: normal numbers into what torch.empty returns."""
    make = torch.empty_like if func is torch.randn_like else torch.empty
    out = make(*args, **{name: value for name, value in kwargs.items() if name != "generator"})
    return _fill_normal(out, 0.0, 1.0)


def _handle_normal(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """torch.normal(mean, std), of which one may be a number, or of numbers with a size."""
    return _make_normal(*args, **{name: kwargs[name] for name in kwargs if name != "generator"})


def _make_normal(
    mean: Tensor | float, std: Tensor | float = 1.0, size: Any = None, **options: Any
) -> Tensor:
    if size is not None:
        return _fill_normal(torch.empty(size, **options), mean, std)
    tensors = [one for one in (mean, std) if isinstance(one, Tensor)]
    # torch gives broadcast_tensors no types.
    out = torch.empty_like(torch.broadcast_tensors(*tensors)[0])  # type: ignore[no-untyped-call]
    return _fill_normal(out, mean, std)


def _handle_normal_in_place(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """Tensor.normal_(mean, std)."""
    mean = args[1] if len(args) > 1 else kwargs.get("mean", 0.0)
    std = args[2] if len(args) > 2 else kwargs.get("std", 1.0)
    return _fill_normal(args[0], mean, std)


def _fill_normal(out: Tensor, mean: Tensor | float, std: Tensor | float) -> Tensor:
    call = find_call()
    with torch.no_grad():
        numbers = draw_normal_like(out, layer=number_draw(call), axis=call.axis)
        return out.copy_(numbers * std + mean)


def _handle_bernoulli(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """torch.bernoulli(p), x.bernoulli(p) and x.bernoulli_(p): 1 with probability p, else 0."""
    x = args[0] if args else kwargs["input"]
    in_place = func is Tensor.bernoulli_
    p: Any = args[1] if len(args) > 1 else kwargs.get("p", 0.5 if in_place else x)
    call = find_call()
    with torch.no_grad():
        real = x if x.is_floating_point() else x.float()
        drawn = draw_uniform_like(real, layer=number_draw(call), axis=call.axis) < p
        return x.copy_(drawn) if in_place else drawn.to(x.dtype)


def _handle_exponential(func: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """Tensor.exponential_(lambd)."""
    rate = args[1] if len(args) > 1 else kwargs.get("lambd", 1.0)
    call = find_call()
    with torch.no_grad():
        numbers = draw_exponential_like(args[0], layer=number_draw(call), axis=call.axis)
        out: Tensor = args[0].copy_(numbers / torch.full_like(numbers, rate))
        return out


HANDLERS: dict[Any, Handler] = {
    torch.rand: _handle_rand,
    torch.rand_like: _handle_rand,
    Tensor.uniform_: _handle_uniform,
    torch.randn: _handle_randn,
    torch.randn_like: _handle_randn,
    torch.normal: _handle_normal,
    Tensor.normal_: _handle_normal_in_place,
    Tensor.exponential_: _handle_exponential,
    torch.bernoulli: _handle_bernoulli,
    Tensor.bernoulli: _handle_bernoulli,
    Tensor.bernoulli_: _handle_bernoulli,
}
