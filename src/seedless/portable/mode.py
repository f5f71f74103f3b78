"""`with portable():` around a forward pass, a backward pass and an optimizer's step.

Law: a dispatch mode sees every op of all three. It is replaced by its implementation, runs as it is
because it is exact, is computed from ops that are dispatched in turn, or is refused. Inside an
implementation the mode is off.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from seedless.numerics.kernel_choice import NATIVE, switch
from seedless.numerics.tested_versions import warn_about_newer_torch
from seedless.portable.context import CONTEXT
from seedless.portable.engine_choice import prepare_engine
from seedless.portable.function_overrides import FunctionOverrides
from seedless.portable.ieee_check import check_device, check_once, check_threads
from seedless.portable.ops.optimizer_hooks import prepare_optimizers
from seedless.portable.ops.registry import (
    FLOAT32_ONLY,
    REGISTRY,
    RULES,
    Kind,
    find_rule,
    name_op,
)
from seedless.portable.refusal import (
    ADVICE,
    refuse,
    refuse_backward,
    refuse_backward_in_group,
    refuse_changed,
)
from seedless.portable.self_test import check_kernels_once

_HALF_TYPES = (torch.float16, torch.bfloat16)
_EXACT = Kind.EXACT


@contextmanager
def portable() -> Iterator[None]:
    """Switch portable arithmetic on; `seedless.portable.block.portable` is what users call.

    Raises `NumericsError` for a device whose float64 does not follow IEEE.
    """
    if is_active():
        yield
        return
    warn_about_newer_torch()
    check_device(torch.device("cpu"))
    for device in {torch.device("cpu"), *CONTEXT.tested_devices}:
        prepare_engine(device)
    check_threads(torch.get_num_threads())
    check_kernels_once(torch.device("cpu"))
    with ExitStack() as stack:
        stack.enter_context(CONTEXT.share_settings(_avoid_library_kernels))
        stack.enter_context(prepare_optimizers())
        stack.enter_context(saved_tensors_hooks(_save, _load))
        stack.enter_context(FunctionOverrides())
        stack.enter_context(PortableMode())  # type: ignore[no-untyped-call]  # untyped in torch
        yield


def is_active() -> bool:
    """Return whether the calling thread computes in portable arithmetic."""
    return any(isinstance(mode, PortableMode) for mode in _get_current_dispatch_mode_stack())


class PortableMode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """The dispatch mode itself; `portable` adds what it needs around it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave out a wrapper that keeps torch.compile out: it costs as much as the call itself.

        Versions of torch that do not call this have no such wrapper.
        """
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run one op: exact, replaced or refused."""
        evaluator = CONTEXT.sum_evaluator
        if evaluator is None:
            out = run(func, args, kwargs or {})
        else:
            out = evaluator.run_op(run, func, args, kwargs or {})
        if out is not NotImplemented:
            for observe in CONTEXT.result_observers:
                observe(name_op(func.name()), args, out)
            return out
        with self:  # torch calls the ops it is made of, and each is dispatched here
            out = func.decompose(*args, **(kwargs or {}))
        if out is NotImplemented:
            raise refuse(func.name(), ADVICE["unknown"])
        return out


def run(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of an overload, or NotImplemented where it is computed from its parts."""
    overload = func.name()
    implementation = REGISTRY.get(overload)
    if implementation is not None:
        _check_types(overload, overload, args, kwargs)
        return implementation(*args, **kwargs)
    kind, computed_by, outputs = RULES.get(overload) or find_rule(func)
    if kind is _EXACT:  # most ops: what only moves values comes first
        _check_types(overload, computed_by, args, kwargs)
        return func(*args, **kwargs)
    if kind is Kind.EACH:
        return _run_each(overload, computed_by, args, kwargs)
    _check_types(overload, computed_by, args, kwargs)
    if kind is Kind.IN_PLACE:
        if _is_plain_addition(computed_by, args, kwargs):
            return args[0].add_(args[1])
        return args[0].copy_(REGISTRY[computed_by](*args, **kwargs))
    if kind is Kind.OUT:
        return _run_out(computed_by, outputs, args, kwargs)
    if kind is Kind.PARTS:
        return NotImplemented
    if kind is Kind.NO:
        return False
    if kind is Kind.INTEGER and any(map(_is_real, (*args, *kwargs.values()))):
        if func._can_decompose():
            return NotImplemented
        raise refuse(overload, ADVICE["unknown"])
    return func(*args, **kwargs)


def _is_plain_addition(computed_by: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether an op in place is a + b of one type, which torch's own op rounds once."""
    if computed_by != "aten::add.Tensor" or len(args) != 2 or kwargs.get("alpha", 1) != 1:
        return False
    a, b = args
    if isinstance(b, Tensor):
        return bool(a.dtype == b.dtype and a.device == b.device)
    return type(b) is int or (type(b) is float and a.is_floating_point())


def _run_out(
    computed_by: str, outputs: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Write the results of a registered overload into the tensors named for them."""
    options = {name: value for name, value in kwargs.items() if name not in outputs}
    result = REGISTRY[computed_by](*args, **options)
    results = result if isinstance(result, tuple) else (result,)
    targets = [kwargs[name] for name in outputs]
    written = tuple(to.copy_(value) for to, value in zip(targets, results, strict=True))
    return written if len(written) > 1 else written[0]


def _run_each(
    overload: str, computed_by: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Tensor] | None:
    """Run an op on lists of tensors as the op on each: foreach kernels may fuse."""
    implementation = REGISTRY.get(computed_by) or getattr(torch.ops.aten, name_op(computed_by))
    in_place = name_op(overload).endswith("_")
    if overload == "aten::_foreach_add_.Scalar" and all(x.dtype == torch.float32 for x in args[0]):
        for x in args[0]:
            _check_types(overload, computed_by, (x,), {})
        torch._foreach_add_(*args)  # rounds each sum once: an optimizer counts its steps
        return None
    results = []
    for i, first in enumerate(args[0]):
        rest = [value[i] if isinstance(value, list | tuple) else value for value in args[1:]]
        named = {k: v[i] if isinstance(v, list | tuple) else v for k, v in kwargs.items()}
        _check_types(overload, computed_by, (first, *rest), named)
        result = implementation(first, *rest, **named)
        results.append(first.copy_(result) if in_place else result)
    return None if in_place else results


def _is_real(value: object) -> bool:
    """Return whether an argument makes the result real: a tensor, a number or a dtype."""
    if isinstance(value, torch.dtype):
        return value.is_floating_point
    return isinstance(value, float) or (isinstance(value, Tensor) and value.is_floating_point())


def _check_types(
    overload: str, computed_by: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Refuse half types, complex numbers, and float64 where a grid would be coarser than it."""
    for value in args:
        if isinstance(value, Tensor):
            if value.device not in CONTEXT.tested_devices:
                prepare_device(value.device)
            dtype = value.dtype
            if dtype is torch.float32:
                continue
            if dtype in _HALF_TYPES or dtype.is_complex:
                raise refuse(f"{overload} of {dtype}", ADVICE["reduced"])
            if dtype == torch.float64 and computed_by in FLOAT32_ONLY:
                raise refuse(f"{overload} of {dtype}", ADVICE["double"])
    target = kwargs.get("dtype")
    if isinstance(target, torch.dtype) and (target in _HALF_TYPES or target.is_complex):
        raise refuse(f"{overload} to {target}", ADVICE["reduced"])


def prepare_device(device: torch.device) -> None:
    """Test a device on its first use: does it follow IEEE, multiply exactly, run our kernels?"""
    if device.type != "meta":
        check_once(device)
        prepare_engine(device)
        check_kernels_once(device)


def _save(tensor: Tensor) -> tuple[Tensor, int]:
    """Save a tensor for the backward pass, with the number of times it was written to until now.

    A result is saved without its history: each would keep the other alive forever.
    """
    return tensor if tensor.grad_fn is None else tensor.detach(), tensor._version


def _load(saved: tuple[Tensor, int]) -> Tensor:
    """Return a saved tensor to a backward pass, which must be inside the block.

    Changes in place are looked for here: torch does it only for tensors it saves itself.
    """
    if not is_active():
        raise refuse_backward()
    if CONTEXT.refuses_backward:
        raise refuse_backward_in_group()
    tensor, version = saved
    if tensor._version != version:
        raise refuse_changed(tuple(tensor.shape))
    return tensor


def _avoid_library_kernels() -> AbstractContextManager[None]:
    """Keep torch from choosing kernels of libraries, or fused ones, for ops that are registered."""
    return switch({name: name == "attention math" for name in NATIVE})
