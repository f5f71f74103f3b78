"""Where the recorder listens in torch: optimizers, modules, backward, loaders and scalers.

Each hook returns at once while torch's compiler traces it, so that nothing of it enters a graph.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from .flags import is_cuda_used
from .outermost_call import OutermostCall
from .recorder import Recorder
from .step_recorder import StepRecorder
from .tensor_digest import digest_value

is_compiling = torch.compiler.is_compiling


def install(recorder: Recorder) -> StepRecorder:
    """Install every hook; return what they report to."""
    steps = StepRecorder(recorder)
    call = OutermostCall()
    _watch_optimizers(recorder, steps, call)
    _watch_modules(recorder, steps, call)
    _watch_backward(recorder, steps, call)
    _watch_loaders(recorder, steps, call)
    _watch_scalers(recorder, steps)
    return steps


def _is_silent() -> bool:
    """Return whether nothing may be read now: a graph of the GPU or a trace is being captured."""
    if torch._C._get_tracing_state() is not None:
        return True
    return is_cuda_used() and torch.cuda.is_current_stream_capturing()


def _watch_optimizers(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    before = recorder.guard(steps.before_step)
    after = recorder.guard(steps.after_step)

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling() or _is_silent():
            return
        call.forget()
        before(optimizer)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling() or _is_silent():
            return
        after(optimizer)
        recorder.end_if_asked()

    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)


def _watch_modules(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    @recorder.guard
    def enter(module: Any, args: Any) -> None:
        call.enter(module, digest_value(args))

    @recorder.guard
    def leave(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        inputs = [call.leave(), *([digest_value(kwargs)] if kwargs else [])]
        steps.see_call(module, inputs, (*args, *kwargs.values()), output)

    def before_forward(module: Any, args: Any) -> None:
        if is_compiling():
            return
        if call.module is None:
            if not (call.in_backward or _is_silent()):
                enter(module, args)
        elif call.is_of(module):
            call.depth += 1

    def after_forward(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        if is_compiling() or not call.is_of(module):
            return
        call.depth -= 1
        if call.depth == 0:
            leave(module, args, kwargs, output)

    register_module_forward_pre_hook(before_forward)
    register_module_forward_hook(after_forward, with_kwargs=True)


def _watch_backward(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    backward = torch.autograd.backward
    see_loss = recorder.guard(steps.see_loss)

    @functools.wraps(backward)
    def recorded_backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if is_compiling() or _is_silent():
            return backward(tensors, *args, **kwargs)
        call.forget()
        see_loss(tensors)
        call.in_backward += 1
        try:
            return backward(tensors, *args, **kwargs)
        finally:
            call.in_backward -= 1

    torch.autograd.backward = recorded_backward


def _watch_loaders(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    iterator: Any = torch.utils.data.dataloader._BaseDataLoaderIter
    next_index, next_batch = iterator._next_index, iterator.__next__
    see_indices, see_batch = recorder.guard(steps.see_indices), recorder.guard(steps.see_batch)

    @functools.wraps(next_index)
    def recorded_next_index(self: Any) -> Any:
        indices = next_index(self)
        see_indices(indices)
        return indices

    @functools.wraps(next_batch)
    def recorded_next_batch(self: Any) -> Any:
        call.forget()
        batch = next_batch(self)
        see_batch(batch)
        return batch

    iterator._next_index = recorded_next_index
    iterator.__next__ = recorded_next_batch


def _watch_scalers(recorder: Recorder, steps: StepRecorder) -> None:
    scaler_class: Any = torch.amp.GradScaler
    step = scaler_class.step

    @functools.wraps(step)
    def recorded_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        steps.scalers[optimizer] = self
        return step(self, optimizer, *args, **kwargs)

    scaler_class.step = recorded_step
