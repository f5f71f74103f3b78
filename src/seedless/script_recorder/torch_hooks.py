"""Where the recorder listens in torch: optimizers, modules, scalers and graphs of the GPU.

Each hook returns at once while torch's compiler traces it, so that nothing of it enters a graph.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from .backward_hooks import watch_backward
from .flags import keep_deterministic
from .loader_hooks import watch_loaders
from .outermost_call import OutermostCall
from .recorder import Recorder
from .seed_calls import SeedRecorder
from .silence import is_capturing, is_compiling, is_silent
from .step_recorder import StepRecorder
from .tensor_digest import digest_value


def install(recorder: Recorder, seeds: SeedRecorder) -> StepRecorder:
    """Install every hook; return what they report to."""
    steps = StepRecorder(recorder, seeds)
    call = OutermostCall()
    _watch_optimizers(recorder, steps)
    _watch_modules(recorder, steps, call)
    watch_backward(recorder, steps, call)
    watch_loaders(recorder, steps, call)
    _watch_scalers(steps)
    _watch_graphs(recorder, steps)
    recorder.before_end.append(steps.finish)
    if recorder.settings.deterministic:
        keep_deterministic()
    return steps


def _watch_optimizers(recorder: Recorder, steps: StepRecorder) -> None:
    see_optimizer = recorder.guard(steps.see_optimizer)
    before = recorder.guard(steps.before_step)
    after = recorder.guard(steps.after_step)
    optimizer_class: Any = torch.optim.Optimizer
    initialize = optimizer_class.__init__

    @functools.wraps(initialize)
    def recorded_init(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        see_optimizer(self)

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling() or is_silent():
            return
        # The arguments are those of the method: the optimizer itself, then the closure.
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        before(optimizer, closure is not None)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if is_silent():
            steps.has_captured_step = is_capturing()
            return
        after(optimizer)
        recorder.end_if_asked()

    optimizer_class.__init__ = recorded_init
    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)


def _watch_modules(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    """Record the outermost calls.

    Not by torch's global hooks: with them each call of each module is slower, and a compiled module
    warns. The compiler takes the wrapper for the ordinary `__call__`, and skips it.
    """
    module_class: Any = torch.nn.Module
    call_module = module_class.__call__

    @recorder.guard
    def enter(args: Any) -> None:
        call.inputs.append(digest_value(args))

    @recorder.guard
    def leave(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        if kwargs:
            call.inputs.append(digest_value(kwargs))
        steps.see_call(module, call.inputs, (*args, *kwargs.values()), output)

    @functools.wraps(call_module)
    def recorded_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or call.is_under_way or recorder.is_busy or is_silent():
            return call_module(self, *args, **kwargs)
        with call:
            enter(args)
            output = call_module(self, *args, **kwargs)
            leave(self, args, kwargs, output)
        return output

    module_class.__call__ = recorded_call


def _watch_scalers(steps: StepRecorder) -> None:
    """Remember which GradScaler belongs to an optimizer."""
    scaler_class: Any = getattr(torch.amp, "GradScaler", None)
    if scaler_class is None:  # torch 2.2 has one for the GPU alone
        scaler_class = torch.cuda.amp.GradScaler
    step = scaler_class.step

    @functools.wraps(step)
    def recorded_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(optimizer, torch.optim.Optimizer):
            steps.scalers[optimizer] = self
        return step(self, optimizer, *args, **kwargs)

    scaler_class.step = recorded_step


def _watch_graphs(recorder: Recorder, steps: StepRecorder) -> None:
    """Record each replay of a graph of the GPU in which an optimizer made a step."""
    graph_class: Any = torch.cuda.CUDAGraph
    if "replay" not in vars(graph_class):  # built without a GPU
        return
    with_steps: weakref.WeakSet[Any] = weakref.WeakSet()
    capture_end, replay = graph_class.capture_end, graph_class.replay
    before = recorder.guard(steps.before_replay)
    after = recorder.guard(steps.after_replay)

    @functools.wraps(capture_end)
    def recorded_capture_end(self: Any) -> Any:
        if steps.has_captured_step:
            with_steps.add(self)
            steps.has_captured_step = False
        return capture_end(self)

    @functools.wraps(replay)
    def recorded_replay(self: Any) -> Any:
        if self not in with_steps:
            return replay(self)
        before()
        result = replay(self)
        after()
        recorder.end_if_asked()
        return result

    graph_class.capture_end = recorded_capture_end
    graph_class.replay = recorded_replay
