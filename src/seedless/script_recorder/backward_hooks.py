"""Record backward passes; where no optimizer makes steps that are seen, each counts as a step."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from .outermost_call import OutermostCall
from .recorder import Recorder
from .silence import is_compiling, is_silent
from .step_recorder import StepRecorder

MAX_NODES = 20000


def watch_backward(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    """Record what `backward` and, without an optimizer, `grad` are called on."""
    backward, grad = torch.autograd.backward, torch.autograd.grad
    leaves: list[Tensor] = []

    @recorder.guard
    def before_backward(tensors: Any) -> None:
        steps.see_loss(tensors)
        steps.look_for_unseen_steps()
        if steps.counts_backward:
            leaves[:] = find_leaves(tensors)
            steps.before_backward(leaves)

    @recorder.guard
    def after_backward() -> None:
        if steps.counts_backward:
            steps.after_backward([leaf.grad for leaf in leaves])
            leaves.clear()
        steps.note_weights()

    @recorder.guard
    def after_grad(outputs: Any, inputs: Any, gradients: Any) -> None:
        steps.see_loss(outputs)
        steps.before_backward(_list_tensors(inputs))
        steps.after_backward(_list_tensors(gradients))

    @functools.wraps(backward)
    def recorded_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or is_silent() or recorder.is_busy:
            return backward(tensors, *args, **kwargs)
        before_backward(tensors)
        with call:  # what is computed again in a backward pass is already recorded
            result = backward(tensors, *args, **kwargs)
        after_backward()
        if steps.counts_backward:
            recorder.end_if_asked()
        return result

    @functools.wraps(grad)
    def recorded_grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = grad(outputs, inputs, *args, **kwargs)
        if is_compiling() or not steps.counts_backward or call.is_under_way or is_silent():
            return result
        after_grad(outputs, inputs, result)
        recorder.end_if_asked()
        return result

    autograd: Any = torch.autograd
    autograd.backward, autograd.grad = recorded_backward, recorded_grad


def find_leaves(tensors: Any) -> list[Tensor]:
    """Return the tensors a backward pass gives gradients to, in the order they are met."""
    found: list[Tensor] = []
    nodes: list[Any] = [each.grad_fn for each in _list_tensors(tensors) if each is not None]
    seen = set(nodes)
    while nodes and len(seen) < MAX_NODES:
        node = nodes.pop()
        if node is None:
            continue
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            found.append(leaf)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found


def _list_tensors(value: Any) -> list[Any]:
    return [value] if isinstance(value, Tensor) else list(value)
