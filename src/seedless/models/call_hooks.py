"""Hooks by which the modules of a converted model note their calls.

They are functions of this file and keep what they know on the module, so that a model can be
copied, pickled and sent to other processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from seedless.numerics.draw_interception import begin_interception, end_interception
from seedless.numerics.forward_calls import begin_call, end_call

_CALL = "_seedless_call"


@dataclass(frozen=True)
class NotedCall:
    """What a module's hooks know.

    Attributes:
        name: the module's name in the model.
        axis: the axis of the samples in what it draws for, where someone said it.
        kept: whether its draws are left as they are.
        draws: whether its own code draws, as far as its source says.
    """

    name: str
    axis: int | None
    kept: bool
    draws: bool


def note_calls(module: nn.Module, call: NotedCall) -> None:
    """Register hooks that note the beginning and the end of each call, once."""
    noted = _CALL in vars(module)
    setattr(module, _CALL, call)
    if not noted:
        module.register_forward_pre_hook(_begin, prepend=True)
        module.register_forward_hook(_end, always_call=True)


def _begin(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    """Note a call. A compiled model runs modules that draw as they are, outside its graph."""
    call: NotedCall = getattr(module, _CALL)
    if module.training and (call.draws or not torch.compiler.is_compiling()):
        _begin_call(call, inputs)


def _end(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    call: NotedCall = getattr(module, _CALL)
    if call.draws or not torch.compiler.is_compiling():
        _end_call(call)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # untyped in torch
def _begin_call(call: NotedCall, inputs: tuple[Any, ...]) -> None:
    if begin_call(call.name, call.axis, inputs, call.kept):
        begin_interception()


@torch.compiler.disable  # type: ignore[untyped-decorator]  # untyped in torch
def _end_call(call: NotedCall) -> None:
    if end_call(call.name):
        end_interception()
