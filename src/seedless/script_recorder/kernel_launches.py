"""Record a kernel that the script launches through Triton as an operation of its own.

Such a launch is no operation of torch's. Triton is never imported here: its launchers are changed
once the script has imported it.
"""

from __future__ import annotations

import functools
import threading
from types import ModuleType
from typing import Any

from .import_hooks import call_after_import
from .op_recorder import OpCall, OpRecorder
from .op_signature import Signature, find_tensors
from .script_ops import ScriptOps

LAUNCHERS = {
    "triton.runtime.jit": ("JITFunction",),
    "triton.runtime.autotuner": ("Autotuner", "Heuristics"),
}
MAX_WRAPPERS = 8  # an autotuner contains a kernel, or heuristics that contain one


def watch_launches(ops: ScriptOps) -> None:
    """Record every launch of a kernel from now on."""
    launching = threading.local()  # `depth`: how many launches contain the one that begins
    for module, names in LAUNCHERS.items():
        call_after_import(module, functools.partial(_watch_launchers, ops, launching, names))


def _watch_launchers(
    ops: ScriptOps, launching: threading.local, names: tuple[str, ...], module: ModuleType
) -> None:
    for name in names:
        launcher: Any = getattr(module, name, None)
        if "run" in vars(launcher or object):
            launcher.run = _watch(ops, launching, launcher.run)


def _watch(ops: ScriptOps, launching: threading.local, run: Any) -> Any:
    """Return the method that launches a kernel, recorded where no other launch contains it.

    An autotuner launches a kernel many times to time it: for the script that is one launch.
    """

    @functools.wraps(run)
    def recorded_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_contained = getattr(launching, "depth", 0) > 0
        if is_contained or kwargs.get("warmup") or not (ops.is_innermost and ops.is_recording()):
            return run(self, *args, **kwargs)
        call = ops.attempt(_look_before, ops, self, args, kwargs)
        launching.depth = 1
        try:
            result = run(self, *args, **kwargs)
        finally:
            launching.depth = 0
        if call is not None:
            ops.attempt(_look_after, ops, call)
        return result

    return recorded_run


def _look_before(ops: ScriptOps, launcher: Any, args: Any, kwargs: dict[str, Any]) -> OpCall:
    kernel = _find_kernel(launcher)
    names = [*getattr(kernel, "arg_names", ()), *map(str, range(len(args)))]
    arguments = {**dict(zip(names, args)), **kwargs}
    # A kernel may write to every tensor that it is given, so that each is an output, too.
    written = frozenset(arguments)
    signature = Signature(
        arguments=tuple(arguments),
        written=written,
        aliased=(),
        view=False,
        reads=True,
        uninitialized=False,
        rebinds=False,
        overwritten=frozenset(),
        drawing=False,
    )
    tensors = [(name, tensor) for name in arguments for tensor in find_tensors(arguments[name])]
    inputs, sources, origins = ops._digest_inputs(signature, tensors)
    module, note = ops._find_module()
    name = f"triton.{getattr(kernel, '__name__', 'kernel')}"
    return OpCall(name, signature, arguments, tensors, inputs, sources, origins, module, note)


def _look_after(ops: ScriptOps, call: OpCall) -> None:
    record = OpRecorder._end(ops, call, ())
    ops.pass_on(record, next((str(tensor.device) for _, tensor in call.tensors), ""))


def _find_kernel(launcher: Any) -> Any:
    """Return the kernel that a launcher starts: itself, or what it contains."""
    for _ in range(MAX_WRAPPERS):
        if hasattr(launcher, "__name__") or not hasattr(launcher, "fn"):
            break
        launcher = launcher.fn
    return launcher
