"""Hooks of the modules of a converted model: they record when a call begins and ends.

The hooks are functions of this file, and their settings are an attribute of the module, so that a
model can be copied, pickled and sent to other processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from seedless.core.errors import NumericsError
from seedless.models.call_hook_mark import CALL, has_call_hooks
from seedless.numerics.draw_interception import begin_interception, end_interception
from seedless.numerics.forward_calls import begin_call, end_call
from seedless.numerics.generator_guard import GeneratorGuard
from seedless.numerics.sample_draws import Axis

_GUARD = "_seedless_guard"


@dataclass(frozen=True)
class CallSettings:
    """The settings of one module's call hooks.

    Attributes:
        name: the module's name in the model.
        axis: the axis of the samples in what it draws for, where the user named it.
        kept: whether its draws are left as they are.
        draws: whether its own code draws, as far as its source says.
        guarded: whether its first forward pass must leave all global generators where they are.
    """

    name: str
    axis: Axis
    kept: bool
    draws: bool
    guarded: bool


def add_call_hooks(module: nn.Module, call: CallSettings) -> None:
    """Register hooks that record the beginning and the end of each call; at most once."""
    had_hooks = has_call_hooks(module)
    setattr(module, CALL, call)
    if not had_hooks:
        module.register_forward_pre_hook(_begin, prepend=True)
        module.register_forward_hook(_end, always_call=True)


def _begin(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    """Record a call. A compiled model runs modules that draw as they are, outside its graph."""
    call: CallSettings = getattr(module, CALL)
    if module.training and (call.draws or not torch.compiler.is_compiling()):
        _begin_call(module, call, inputs)


def _end(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    call: CallSettings = getattr(module, CALL)
    if call.draws or not torch.compiler.is_compiling():
        _end_call(module, call, failed=output is None)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # untyped in torch
def _begin_call(module: nn.Module, call: CallSettings, inputs: tuple[Any, ...]) -> None:
    if begin_call(call.name, call.axis, inputs, call.kept):
        begin_interception()
        if call.guarded and _GUARD not in vars(module):
            setattr(module, _GUARD, GeneratorGuard())


@torch.compiler.disable  # type: ignore[untyped-decorator]  # untyped in torch
def _end_call(module: nn.Module, call: CallSettings, failed: bool) -> None:
    if not end_call(call.name):
        return
    end_interception()
    guard = vars(module).get(_GUARD)
    if isinstance(guard, GeneratorGuard) and not failed:
        setattr(module, _GUARD, None)  # the first pass is checked, and no other: it costs time
        if moved := guard.moved():
            raise NumericsError(
                f"the first forward pass of module {call.name!r} used {' and '.join(moved)} where "
                "no torch function was seen to draw. Draws by Python's random and by numpy "
                "have no form by sample: model.seedless_report names the lines that were found. "
                "Draw from torch.rand or bernoulli instead, or name the module in "
                "seedless.convert(model, keep=[...])"
            )
