"""A kernel of Triton's is one operation: its tensors before it, and after it."""

import sys
from types import ModuleType

import pytest
import torch

from seedless.script_recorder.kernel_launches import watch_launches
from seedless.script_recorder.script_ops import ScriptOps


class Kernel:
    """Launches as Triton's kernels do: kernel[grid](...) calls run."""

    def __init__(self, function):
        self.fn, self.__name__ = function, function.__name__
        self.arg_names = function.__code__.co_varnames

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args, grid, warmup, **kwargs):
        return self.fn(*args, **kwargs)


class Tuner(Kernel):
    """Times a kernel before it launches it."""

    def __init__(self, kernel):
        self.fn = kernel

    def run(self, *args, **kwargs):
        for _ in range(5):
            result = self.fn.run(*args, **kwargs)
        return result


@pytest.fixture
def record(monkeypatch):
    """Return a function that records a run, with stand-ins for Triton's launchers."""
    jit, tuner = ModuleType("triton.runtime.jit"), ModuleType("triton.runtime.autotuner")
    jit.JITFunction = type("JITFunction", (Kernel,), {"run": Kernel.run})
    tuner.Autotuner = type("Autotuner", (Tuner,), {"run": Tuner.run})
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", jit)
    monkeypatch.setitem(sys.modules, "triton.runtime.autotuner", tuner)

    def record(run):
        lines = []
        ops = ScriptOps(lines.append, lambda: False)
        watch_launches(ops)
        ops.start()
        try:
            run(jit.JITFunction, tuner.Autotuner)
        finally:
            ops.stop()
        return [line for line in lines if line["op"].startswith("triton.")]

    return record


def add_rows(source, out, scale):
    # Writes past torch, as a kernel does.
    out.numpy()[:] = source.numpy().sum(0) * scale


def test_a_launch_is_an_operation_with_its_line_and_its_tensors(record):
    def run(kernel, tuner):
        out = torch.empty(3)
        kernel(add_rows)[(1,)](torch.ones(2, 3), out, scale=2)
        assert torch.equal(out, torch.full((3,), 4.0))

    first, again = (record(run) for _ in range(2))
    (line,) = first
    assert line["op"] == "triton.add_rows"
    assert "test_kernel_launches.py:" in line["line"]
    assert line["inputs"][1] == "uninitialized", "it is written here, and not read"
    assert len(line["outputs"]) == 2
    assert "scale=2" in line["settings"]
    assert first == again


def test_another_result_of_equal_inputs_is_seen(record):
    def run_with(scale):
        def leave(source, out):
            out.numpy()[:] = scale

        return lambda kernel, tuner: kernel(leave)[(1,)](torch.ones(2), torch.zeros(2))

    (one,), (two,) = record(run_with(1.0)), record(run_with(2.0))
    assert one["inputs"] == two["inputs"]
    assert one["outputs"] != two["outputs"]


def test_a_tuner_that_launches_a_kernel_many_times_is_one_operation(record):
    def run(kernel, tuner):
        tuner(kernel(add_rows))[(1,)](torch.ones(2, 3), torch.zeros(3), scale=1)

    (line,) = record(run)
    assert line["op"] == "triton.add_rows"


def test_what_a_kernel_wrote_is_no_longer_uninitialized(record):
    def run(kernel, tuner):
        out = torch.empty(3)
        kernel(add_rows)[(1,)](torch.ones(2, 3), out, scale=2)
        kernel(add_rows)[(1,)](torch.ones(2, 3), out, scale=2)

    lines = record(run)
    assert lines[1]["inputs"][1] == lines[0]["outputs"][1]
