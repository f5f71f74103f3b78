"""Record every operation of one step: from the end of the step before it to its own end.

ops-<rank>-<pid>-<step>.jsonl     a line for each operation and each draw of Python and numpy
tensors-<rank>-<pid>-<step>.json  the digest of each weight, gradient and state, by name
"""

from __future__ import annotations

import json
import os
from typing import Any

from torch import Tensor

from .compiled_calls import watch_compiled_calls
from .kernel_launches import watch_launches
from .memory_access import watch_addresses, watch_threads
from .module_state import read_parameters
from .pending import is_pending, resolve
from .recorder import Recorder
from .script_ops import MAX_OPERATIONS, ScriptOps, digest_one
from .step_recorder import StepRecorder
from .tensor_digest import digest_value

WRITE_AFTER_LINES = 512
MAX_THREADS = 100


def install(recorder: Recorder, steps: StepRecorder) -> None:
    """Record the operations of the step that the settings name."""
    wanted = recorder.settings.ops_at
    if wanted is None:
        return
    ops = OpsOfStep(recorder, wanted)
    watch_compiled_calls(ops.mode)
    watch_launches(ops.mode)
    watch_addresses(ops.mode)
    watch_threads(ops.see_thread)
    recorder.before_step.append(ops.see_optimizer)
    recorder.after_step.append(ops.see_step)
    recorder.on_draw.append(ops.see_draw)
    recorder.before_end.append(ops.finish)
    recorder.after_fork.append(ops.forget)
    if wanted == 1:
        ops.start()


class OpsOfStep:
    """The operations of one step, and the tensors before and after it.

    Attributes:
        mode: sees the operations while the step is recorded.
    """

    def __init__(self, recorder: Recorder, step: int) -> None:
        self._recorder = recorder
        self._step = step
        self._is_open = False
        self._draws = 0
        self._threads = 0
        self._lines: list[dict[str, Any]] = []
        self._tensors: dict[str, Any] = {}
        self._optimizer: Any = None
        self.mode = ScriptOps(self._write, lambda: recorder.is_busy)

    def start(self) -> None:
        """Record from now on."""
        self._is_open = True
        self.mode.start()

    def see_step(self, step: int) -> None:
        """Begin after the step before, end after this one."""
        self.mode.in_optimizer = False
        if step == self._step - 1:
            self.start()
        elif step == self._step:
            self.finish()

    def see_optimizer(self, optimizer: Any) -> None:
        """Record the weights before an optimizer changes them."""
        if self._is_open:
            self.mode.in_optimizer = True
            self._optimizer = optimizer
            self._tensors = self.mode.attempt(self._digest_before, optimizer) or {}

    def _digest_before(self, optimizer: Any) -> dict[str, Any]:
        parameters = self._name_parameters(optimizer)
        self.mode.name_tensors(_list_state(optimizer, parameters))
        return {"weights_before": {name: digest_one(each) for name, each in parameters.items()}}

    def see_draw(self, generator: str, call: str, line: str, value: Any) -> None:
        """Record a draw of Python or numpy between the operations."""
        if self._is_open and self._draws < MAX_OPERATIONS:
            self._draws += 1
            draw = {"kind": "draw", "generator": generator, "call": call, "line": line}
            self._write({**draw, "value": digest_value(value)})

    def see_thread(self, line: str) -> None:
        """Record that the script starts a thread, also in a step before this one."""
        if self._recorder.step < self._step and self._threads < MAX_THREADS:
            self._threads += 1
            self._write({"kind": "thread", "line": line})

    def finish(self) -> None:
        """Record nothing more, and write everything."""
        if not self._is_open:
            return
        self.mode.stop()
        self._is_open = False
        truncated = max(self.mode.count, self._draws) >= MAX_OPERATIONS
        self._write({"kind": "end", "ops": self.mode.count, "truncated": truncated})
        self._flush()
        if self._optimizer is not None:
            self._tensors.update(self.mode.attempt(self._digest_after, self._optimizer) or {})
        (tensors,) = resolve([self._tensors])
        with open(self._find_path("tensors", "json"), "w", encoding="utf-8") as file:
            json.dump(tensors, file)
        self._optimizer = None

    def forget(self) -> None:
        """Record nothing in a forked process: its operations belong to no step."""
        if self._is_open:
            self.mode.stop()
            self._is_open = False
            self._lines = []

    def _digest_after(self, optimizer: Any) -> dict[str, Any]:
        parameters = self._name_parameters(optimizer)
        state = _list_state(optimizer, parameters)
        gradients = {name: each.grad for name, each in parameters.items() if each.grad is not None}
        return {
            # Read after the step: a closure that the step calls may compute them.
            "gradients": {name: digest_one(each) for name, each in gradients.items()},
            "weights": {name: digest_one(each) for name, each in parameters.items()},
            "optimizer_state": {name: digest_value(value) for name, value in state.items()},
        }

    def _name_parameters(self, optimizer: Any) -> dict[str, Tensor]:
        """Return the optimizer's parameters by name, or by position where no module has them."""
        return {
            self.mode.names.find_parameter(each) or f"parameter {position}": each
            for position, each in enumerate(read_parameters(optimizer))
        }

    def _write(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        if len(self._lines) >= WRITE_AFTER_LINES:
            self._flush()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if any(map(is_pending, lines)):
            lines = resolve(lines)
        with open(self._find_path("ops", "jsonl"), "a", encoding="utf-8") as file:
            file.writelines(
                json.dumps(line, separators=(",", ":"), default=str) + "\n" for line in lines
            )

    def _find_path(self, name: str, ending: str) -> str:
        rank = os.environ.get("RANK", "")
        process = f"{int(rank) if rank.isdigit() else 0}-{os.getpid()}"
        file = f"{name}-{process}-{self._step}.{ending}"
        return os.path.join(self._recorder.settings.folder, file)


def _list_state(optimizer: Any, parameters: dict[str, Tensor]) -> dict[str, Any]:
    """Return the optimizer's state, as "Net.head.weight/exp_avg"."""
    return {
        f"{name}/{key}": value
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
