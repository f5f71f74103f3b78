"""By what a block recognizes a step it has planned: the code, and the state of the models it uses.

A loop makes a new function object in every round, so a function is known by its code. Of the models
that it reaches directly, the plan depends on which parameters take a gradient and on which layers
are in training.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from inspect import unwrap
from typing import Any

from torch import nn


def identify_step(forward: Callable[..., Any], loss_of: Callable[..., Any]) -> Hashable:
    """Return a value that is another one for a step with another plan."""
    return _identify(unwrap(forward)), _identify(unwrap(loss_of))


def _identify(function: Any) -> Hashable:
    if isinstance(function, partial):
        rest = [_describe(each) for each in (*function.args, *function.keywords.values())]
        return _identify(function.func), tuple(rest)
    if isinstance(function, nn.Module):
        return _describe(function)
    code = getattr(function, "__code__", None)
    states = tuple(_describe(each) for each in _list_reached(function))
    return (type(function) if code is None else code), states


def _describe(value: Any) -> Hashable:
    """Return which model a value is, and its state; None for anything but a model."""
    if not isinstance(value, nn.Module):
        return None
    return (
        id(value),
        tuple(parameter.requires_grad for parameter in value.parameters()),
        tuple(module.training for module in value.modules()),
    )


def _list_reached(function: Any) -> Iterator[nn.Module]:
    """Yield the models that a function names, and those that an object it names holds."""
    code, names = getattr(function, "__code__", None), []
    owner = getattr(function, "__self__", None)
    if owner is not None:
        names.append(owner)
    for cell in getattr(function, "__closure__", None) or ():
        try:
            names.append(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            continue
    names.extend(getattr(function, "__defaults__", None) or ())
    names.extend((getattr(function, "__kwdefaults__", None) or {}).values())
    known = getattr(function, "__globals__", {})
    names.extend(known[name] for name in (code.co_names if code else ()) if name in known)
    if code is None:
        names.append(function)
    for value in names:
        yield from _list_held(value)


def _list_held(value: Any) -> Iterator[nn.Module]:
    """Yield a model, or the models in a list, a dict or the attributes of an object."""
    if isinstance(value, nn.Module):
        yield value
        return
    held: Any = ()
    if isinstance(value, list | tuple):
        held = value
    elif isinstance(value, Mapping):
        held = value.values()
    elif not isinstance(value, type) and not hasattr(value, "__path__"):  # no class, no package
        held = getattr(value, "__dict__", {}).values()
    yield from (each for each in held if isinstance(each, nn.Module))
