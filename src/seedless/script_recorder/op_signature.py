"""What an operation's schema says of its arguments and results, and its settings as text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

LONGEST_SETTING = 200

# Operations that return uninitialized memory: its bytes say nothing about the run.
_UNINITIALIZED_OP = re.compile(r"(new_|_)?empty|resize_")

# BatchNorm writes to these arguments, and its oldest schemas do not declare it.
_SILENTLY_WRITTEN = frozenset({"running_mean", "running_var"})

# Operations that use the dtype and shape of an argument and never read its elements.
_TEMPLATE_OP = re.compile(r"new_|\w+_like$")

# A view whose schema does not declare that it shares memory with its argument.
_SILENT_VIEW = "aten::_unsafe_view"

# Operations that let a tensor use another memory: `copy.deepcopy` and `torch.load` use them.
_REBINDING_OPS = frozenset({"set_", "set_data"})

# In-place operations whose result does not depend on what was there before.
_OVERWRITING_OPS = frozenset(
    {
        *("copy_", "fill_", "zero_", "_foreach_copy_", "_foreach_zero_"),
        *("uniform_", "normal_", "random_", "bernoulli_", "exponential_"),
        *("cauchy_", "log_normal_", "geometric_"),
    }
)

# Results that are scratch memory for the backward pass, of which a kernel writes only a part: the
# operation and the position of the result; and what the backward operations call the argument.
_SCRATCH_RESULTS = {"mkldnn_rnn_layer": 3, "_cudnn_rnn": 3, "cudnn_batch_norm": 3, "miopen_rnn": 3}
_SCRATCH_RESULTS["_batch_norm_with_update"] = 3
_SCRATCH_ARGUMENTS = frozenset({"workspace", "reserve", "reserveSpace", "reserve_space"})

_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


@dataclass(frozen=True)
class Signature:
    """What an operation's schema declares of its arguments and results.

    Attributes:
        arguments: their names, in order.
        written: the arguments it changes.
        aliased: for each result, whether it is a changed argument or a view of one.
        view: it returns views of its argument and computes nothing.
        reads: its result depends on the elements of its arguments, not only on their shapes.
        uninitialized: it returns uninitialized memory.
        rebinds: it gives its argument another memory, and computes nothing.
        overwritten: the arguments whose elements before the operation have no effect.
        drawing: it may draw from a generator.
        scratch: the arguments that are scratch memory.
        scratch_result: the position of the result that is scratch memory, or None.
    """

    arguments: tuple[str, ...]
    written: frozenset[str]
    aliased: tuple[bool, ...]
    view: bool
    reads: bool
    uninitialized: bool
    rebinds: bool
    overwritten: frozenset[str]
    drawing: bool
    scratch: frozenset[str] = frozenset()
    scratch_result: int | None = None


@cache
def read_signature(op: Any) -> Signature:
    """Return what an operation's schema declares; cached, since reading it from torch is slow."""
    schema = getattr(op, "_schema", None)
    if schema is None:  # an operation that calls others, such as a branch of torch.cond
        return Signature((), frozenset(), (False,), False, True, False, False, frozenset(), False)
    names = tuple(argument.name for argument in schema.arguments)
    declared = {
        argument.name
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    undeclared = _SILENTLY_WRITTEN.intersection(names) if "backward" not in schema.name else set()
    written = frozenset(declared | undeclared)
    aliased = tuple(
        result.alias_info is not None or schema.name == _SILENT_VIEW for result in schema.returns
    )
    view = bool(aliased) and all(aliased) and not written
    name = schema.name.rpartition("::")[2]
    return Signature(
        arguments=names,
        written=written,
        aliased=aliased,
        view=view,
        reads=not (view or _TEMPLATE_OP.match(name) or name in _REBINDING_OPS),
        uninitialized=_UNINITIALIZED_OP.match(name) is not None,
        rebinds=name in _REBINDING_OPS,
        overwritten=frozenset(
            argument.name
            for argument in schema.arguments
            if argument.name in written and (argument.is_out or name in _OVERWRITING_OPS)
        ),
        drawing="generator" in names or torch.Tag.nondeterministic_seeded in op.tags,
        scratch=_SCRATCH_ARGUMENTS.intersection(names),
        scratch_result=_SCRATCH_RESULTS.get(name),
    )


def find_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of an argument: itself, or those in a list."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from find_tensors(item)


def pair_results(signature: Signature, result: Any) -> Iterator[tuple[Any, bool]]:
    """Yield every result, those of lists one by one, and whether it aliases an argument.

    Scratch memory is left out: it is no result.
    """
    results = (result,) if len(signature.aliased) == 1 else result or ()
    for position, (value, aliased) in enumerate(zip(results, signature.aliased)):
        if position == signature.scratch_result:
            continue
        for item in value if isinstance(value, (list, tuple)) else (value,):
            yield item, aliased


def show_settings(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return "name=value" for every argument that does not consist of tensors."""
    return tuple(
        f"{name}={_shorten(_show(value))}"
        for name, value in arguments.items()
        if not _is_tensors(value)
    )


def _is_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, Tensor) for item in value)
    return isinstance(value, Tensor)


def _show(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_show, value))}]"
    if value is None or isinstance(value, _PLAIN):
        return repr(value)
    return type(value).__name__  # its repr may contain an address, or very much text


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_SETTING:
        return text
    rest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{text[:LONGEST_SETTING]}... (blake2b {rest})"
