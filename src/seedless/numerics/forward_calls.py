"""Which module of a converted model is being called: the name by which its draws are keyed.

A layer's draws depend on the name of its module, on how many times that module was called before in
the same forward pass, and on how many draws this call made before. A forward pass begins with the
call of the outermost module.

In a backward pass that computes part of the model again (activation checkpointing), only that part
is called, and its number is not known. A module that was called once in the forward pass has number
0; another one is refused.
"""

import hashlib
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import torch

from seedless.core.errors import NumericsError

_NAMED = 1 << 63  # set in the number of a layer that has a name, so that it is never below 2^32


@dataclass
class Call:
    """A call of a module, while it lasts.

    Attributes:
        name: that of the module in the model.
        number: how many times the module was called before in this forward pass.
        axis: the axis of the samples in what the module draws for, where it is known, or "shared".
        inputs: what the module was called with.
        kept: whether the module's draws are left as they are.
        draws: how many draws the call has made.
    """

    name: str
    number: int
    axis: int | Literal["shared"] | None
    inputs: tuple[Any, ...]
    kept: bool = False
    draws: int = 0


@dataclass
class _Calls(threading.local):
    """The calls of one thread: those that last, and how often each module was called."""

    lasting: list[Call] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


_CALLS = _Calls()


def begin_call(
    name: str, axis: int | Literal["shared"] | None, inputs: tuple[Any, ...], kept: bool
) -> bool:
    """Note that a module is called; return whether it is the outermost one."""
    outermost = not _CALLS.lasting
    if outermost and not is_recomputed():
        _CALLS.counts = {}
    _CALLS.lasting.append(Call(name, _count_call(name), axis, inputs, kept))
    return outermost


def end_call(name: str) -> bool:
    """Note that the call of a module has ended; return whether it was the outermost one.

    Calls inside it that an error ended without notice end with it. A call that was not noted, as of
    a module in evaluation mode, ends nothing.
    """
    if all(call.name != name for call in _CALLS.lasting):
        return False
    while _CALLS.lasting.pop().name != name:
        pass
    return not _CALLS.lasting


def find_call() -> Call:
    """Return the innermost call that lasts."""
    return _CALLS.lasting[-1] if _CALLS.lasting else Call("", 0, None, ())


def number_layer(name: str) -> int:
    """Return the layer number of a module that draws once in each call: 2^63 to 2^64 - 1."""
    lasts = bool(_CALLS.lasting) or is_recomputed()
    return hash_layer(name, _count_call(name) if lasts else 0, 0)


def number_draw(call: Call) -> int:
    """Return the layer number of the next draw of a call, which counts it: 2^63 to 2^64 - 1."""
    call.draws += 1
    return hash_layer(call.name, call.number, call.draws)


@lru_cache(maxsize=1 << 14)
def hash_layer(name: str, number: int, draw: int) -> int:
    """Return a layer number from the name of a module, the number of its call, and that of a draw.

    It is the first 8 bytes of a BLAKE2b hash, with the highest bit set.
    """
    text = f"{name}\n{number}\n{draw}"
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"seedless layer").digest()
    return int.from_bytes(digest, "little") | _NAMED


def is_recomputed() -> bool:
    """Whether a backward pass calls this, to compute part of the forward pass again."""
    return torch._C._current_autograd_node() is not None


def _count_call(name: str) -> int:
    """Return how many times a module was called before in this forward pass, and count the call."""
    if is_recomputed():
        if _CALLS.counts.get(name, 1) > 1:
            raise NumericsError(
                f"module {name!r} is computed again in the backward pass, and was called "
                f"{_CALLS.counts[name]} times in the forward pass: which of these calls it is, and "
                "so which masks it had, is not known. Leave activation checkpointing out for it, "
                "or give each call a module of its own"
            )
        return 0
    number = _CALLS.counts.get(name, 0)
    _CALLS.counts[name] = number + 1
    return number
