"""Record each optimizer step: what entered it, what it computed, and what it left."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor

from .causal_order import CAUSAL_ORDER
from .events import Events, fold
from .flags import is_cuda_used, read_autocast, read_flags
from .generators import read_states
from .module_state import BufferList, read_optimizer_state, read_parameters, read_rates
from .pending import PendingNumber, is_pending
from .recorder import Recorder
from .seed_calls import SeedRecorder
from .tensor_digest import digest_tensors, digest_value
from .user_lines import find_user_line

MAX_SHOWN = 8


class StepRecorder:
    """Collects what happens between steps, and writes a line for each step."""

    def __init__(self, recorder: Recorder, seeds: SeedRecorder) -> None:
        self.recorder = recorder
        self.seeds = seeds
        self.file = recorder.file
        self.events = Events()
        self.shown: dict[str, Any] = {}
        self.optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.scalers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._number_of_optimizers = 0
        self.buffers = BufferList()
        self.has_captured_step = False
        self.autocast: dict[str, Any] = read_autocast()
        self._before: dict[str, Any] = {}
        self._states: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._flags: dict[str, Any] | None = None
        self._has_unseen_steps = False
        self._versions: list[int] | None = None  # of the weights, after the last backward pass

    @property
    def counts_backward(self) -> bool:
        """Whether backward passes count as steps, since no optimizer makes steps that are seen."""
        return not self._number_of_optimizers or self._has_unseen_steps

    # Events between steps.

    def see_optimizer(self, optimizer: Any) -> None:
        """Remember an optimizer, under the next number."""
        if optimizer not in self.optimizers:
            self.optimizers[optimizer] = self._number_of_optimizers
            self._number_of_optimizers += 1

    def see_loader(self, loader: Any) -> None:
        """Remember the generators of a DataLoader and of its samplers."""
        samplers = [loader, loader.sampler, getattr(loader, "batch_sampler", None)]
        samplers.append(getattr(samplers[-1], "sampler", None))
        for sampler in samplers:
            generator = getattr(sampler, "generator", None)
            if isinstance(generator, torch.Generator):
                self.seeds.see_torch_generator(generator)

    def see_indices(self, indices: Any) -> None:
        """Record what a sampler gave."""
        self.events.add("indices", digest_value(indices))

    def see_batch(self, batch: Any) -> None:
        """Record what a DataLoader gave."""
        self.events.add("batch", digest_value(batch))

    def see_call(self, module: Any, inputs: list[Any], given: Any, output: Any) -> None:
        """Record a call of a module that no other module made."""
        self.buffers.add(module)
        self.autocast = read_autocast()
        self.events.add("input", fold(inputs))
        self.events.add("output", digest_value(output))
        shapes = self.shown.setdefault("shapes", {}).setdefault("input", [])
        shapes.extend(_list_shapes(given)[: MAX_SHOWN - len(shapes)])

    def see_loss(self, tensors: Any) -> None:
        """Record what `backward` was called on."""
        losses = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        self.events.add("loss", digest_tensors(losses))
        for loss in losses:
            if isinstance(loss, Tensor) and loss.numel() == 1:
                self._show("loss", show_number(loss))

    # Steps.

    def before_step(self, optimizer: Any, has_closure: bool = False) -> None:
        """Record what the optimizer is about to use.

        A closure, as Lightning passes one, computes the gradients within the step: those that are
        there before it are of the last step, and are not recorded.
        """
        self._has_unseen_steps = False
        for function in self.recorder.before_step:
            function(optimizer)
        parameters = read_parameters(optimizer)
        rates = read_rates(optimizer)
        self._before = {
            "weights_before": digest_tensors(parameters),
            "optimizer_state_before": self._digest_state_before(optimizer),
            "rate": [digest_value(rate) for rate in rates],
        }
        if not has_closure:
            self._before["gradients"] = digest_tensors([each.grad for each in parameters])
        self.shown["rate"] = [
            show_number(rate) if isinstance(rate, Tensor) else rate for rate in rates
        ]
        scaler = self.scalers.get(optimizer)
        scale = getattr(scaler, "_scale", None)  # a scaler that is switched off has none
        if scale is not None:
            self._before["scale"] = digest_value(scale)
            self.shown["scale"] = show_number(scale)

    def after_step(self, optimizer: Any) -> None:
        """Write the line of the step that has ended."""
        state = read_optimizer_state(optimizer)
        parameters = read_parameters(optimizer)
        values = {
            **self._before,
            **self.events.take(),
            "weights": digest_tensors(parameters),
            "optimizer_state": digest_value(state.content),
        }
        if "gradients" not in values:  # a closure has computed them by now
            values["gradients"] = digest_tensors([each.grad for each in parameters])
        self._states[optimizer] = (state.versions, values["optimizer_state"])
        self.see_optimizer(optimizer)
        number, name = self.optimizers[optimizer], type(optimizer).__name__
        self.write_step("step", values, {"optimizer": number, "optimizer_type": name})

    def look_for_unseen_steps(self) -> None:
        """Notice, before a backward pass, that the weights have changed without a step.

        A step that is compiled as a whole calls no hook, nor does an update by hand.
        """
        if self.recorder.step == 0 and self._number_of_optimizers and self._versions is not None:
            self._has_unseen_steps = self._versions != self._read_versions()

    def note_weights(self) -> None:
        """Remember, after a backward pass, which writes to the weights have been made."""
        if self.recorder.step == 0 and self._number_of_optimizers:
            self._versions = self._read_versions()

    def _read_versions(self) -> list[int]:
        return [each._version for each in self._read_all_parameters()]

    def before_backward(self, leaves: list[Tensor]) -> None:
        """Record the tensors a script without an optimizer is about to get gradients for."""
        self._before = {"weights_before": digest_tensors(leaves)}

    def after_backward(self, gradients: list[Tensor | None]) -> None:
        """Write the line of a backward pass in a script without an optimizer."""
        values = {**self._before, **self.events.take(), "gradients": digest_tensors(gradients)}
        self.write_step("backward", values, {})

    def before_replay(self) -> None:
        """Record what a graph of the GPU is about to change."""
        self._before = {"weights_before": digest_tensors(self._read_all_parameters())}

    def after_replay(self) -> None:
        """Write the line of a replay in which an optimizer has made a step."""
        parameters = self._read_all_parameters()
        values = {
            **self._before,
            **self.events.take(),
            "gradients": digest_tensors([each.grad for each in parameters]),
            "weights": digest_tensors(parameters),
        }
        self.write_step("replay", values, {})

    def write_step(self, kind: str, values: dict[str, Any], details: dict[str, Any]) -> None:
        """Write the line of a step, and before it what changed since the last one."""
        step = self.recorder.step + 1
        if buffers := self.buffers.take():
            values["buffers"] = digest_tensors(buffers)
        for write_lines in self.recorder.before_line:
            write_lines()
        self.write_flags(step)
        line = {
            "kind": kind,
            "step": step,
            **details,
            "line": find_user_line(),
            "values": {name: values[name] for name in CAUSAL_ORDER if name in values},
            "shown": self.shown,
            "generators": read_states(self.seeds.generators),
        }
        if is_pending(line):
            line["pending"] = True
        self.shown = {}
        self._before = {}
        self.file.open()
        self.file.write(line)
        self.recorder.finish_step()

    def write_flags(self, step: int) -> None:
        """Write the switches where they changed, and what torch is before the first step."""
        flags = {**read_flags(), **self.autocast}
        if flags != self._flags:
            if self._flags is None:
                self.file.write(describe_torch())
            self.file.write({"kind": "flags", "step": step, "flags": flags})
            self._flags = flags

    def finish(self) -> None:
        """Write what belongs to no step: draws after the last one, and torch if there was none."""
        for write_lines in self.recorder.before_line:
            write_lines()
        if self._flags is None and self.file.worker_id is None:
            self.write_flags(self.recorder.step)

    def _digest_state_before(self, optimizer: Any) -> Any:
        """Return the digest after the last step where no tensor has been written since."""
        state = read_optimizer_state(optimizer)
        versions, digest = self._states.get(optimizer, (None, None))
        if versions is not None and versions == state.versions:
            return digest
        return digest_value(state.content)

    def _read_all_parameters(self) -> list[Tensor]:
        return [each for optimizer in self.optimizers for each in read_parameters(optimizer)]

    def _show(self, name: str, value: Any) -> None:
        values = self.shown.setdefault(name, [])
        if len(values) < MAX_SHOWN:
            values.append(value)


def describe_torch() -> dict[str, Any]:
    """Return the line that says which torch this is, and on what it runs."""
    devices = []
    if is_cuda_used():
        devices = [torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())]
    return {
        "kind": "torch",
        "version": str(torch.__version__),
        "cuda": torch.version.cuda,
        "devices": devices,
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }


def show_number(tensor: Tensor) -> Any:
    """Return the number in a tensor of one element, later if it is on a device."""
    if tensor.is_meta:
        return None
    number = tensor.detach()
    number = getattr(number, "_local_tensor", number).reshape(-1)[0]
    if number.device.type == "cpu":
        return number.item()
    return PendingNumber(number.double().clone())


def _list_shapes(value: Any) -> list[list[int]]:
    values = value if isinstance(value, (list, tuple)) else [value]
    tensors = [each for each in values if isinstance(each, Tensor) and not each.is_nested]
    return [list(each.shape) for each in tensors[:MAX_SHOWN]]
