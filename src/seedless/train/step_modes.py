"""How a step is executed: eager, captured as a CUDA graph, or compiled with torch.compile.

A captured step launches the same kernels as the eager step and gives the same bits. A compiled step
does not: its kernels are fused, so its sums and products round at other places.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.registry import choose
from seedless.train.state_tensors import collect_state
from seedless.train.step import Step
from seedless.train.training_problem import TrainingProblem

WARM_UP_STEPS = 3  # before a capture: libraries create handles and workspaces at their first use
MOST_COMPILATIONS = 64  # of one function: a block type is compiled once for each shape it has


@dataclass(frozen=True, eq=False)
class CapturedStep:
    """One captured step: its input tensors, the graph, and its output tensor."""

    samples: Tensor | None
    rows: Tensor
    graph: torch.cuda.CUDAGraph
    losses: Tensor


class GraphStep(Step):
    """Launches the whole step as one CUDA graph, captured once for each batch size.

    An epoch has at most two batch sizes: the full batch and a shorter one at its end.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        super().__init__(problem)
        self.epoch = torch.zeros((), dtype=torch.int64, device=problem.device)
        self.captured: dict[int, CapturedStep] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Train on the rows (B,); return their losses (B,), valid until the next step."""
        samples = self.copy_from_host(rows)
        self.epoch.fill_(epoch)
        captured = self.captured.get(len(rows))
        if captured is None:
            captured = self.captured[len(rows)] = self.capture(samples, rows)
        captured.rows.copy_(rows)
        if captured.samples is not None and samples is not None:
            captured.samples.copy_(samples)
        captured.graph.replay()
        return captured.losses

    def capture(self, samples: Tensor | None, rows: Tensor) -> CapturedStep:
        """Return a captured step; model and optimizer are left as they were."""
        # [Step 1] Copy the inputs into memory of their own: the graph will always read from there.
        rows = rows.clone()
        samples = None if samples is None else samples.clone()
        # [Step 2] Save the state, because the warm-up steps change it.
        state = collect_state(self.problem.model, self.problem.optimizer)
        before = {name: tensor.clone() for name, tensor in state.items()}
        # [Step 3] Warm up on another stream, as torch.cuda.graph requires.
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self.update(samples, rows, self.epoch)
        torch.cuda.current_stream().wait_stream(side)
        # [Step 4] Restore the state.
        self.clear_gradients()
        for name, tensor in state.items():
            tensor.copy_(before[name])
        # [Step 5] Capture one step. Capturing launches nothing, so the state does not change.
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            losses = self.update(samples, rows, self.epoch)
        return CapturedStep(samples, rows, graph, losses)


class CompiledStep(Step):
    """Compiles forward and backward of each region of the model with torch.compile.

    A model declares its regions; one that declares none is compiled as a whole. Repeated blocks of
    one shape are compiled once. Only full batches use the compiled code: compiling again for the
    shorter batch at an epoch's end takes as long as thousands of steps. That batch and evaluation
    run in eager mode.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        super().__init__(problem)
        configure_compiler()
        self.compiled = compile_regions(problem.model)
        batch = min(problem.order.batch_size, len(problem.order))
        self.size = min(batch, problem.config.train.microbatch or batch)

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Train on the rows (B,); return their losses (B,)."""
        # The epoch is a tensor: as a Python number, each epoch would be compiled again.
        epoch_tensor = torch.tensor(epoch, device=rows.device)
        return self.update(self.copy_from_host(rows), rows, epoch_tensor)

    def evaluate(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the losses (B,); those of a full batch are computed by the compiled regions."""
        if len(labels) != self.size:
            return super().evaluate(samples, labels)
        for module, forward in self.compiled:
            module.forward = forward
        try:
            return super().evaluate(samples, labels)
        finally:
            for module, _ in self.compiled:
                del module.forward


class CompiledGraphStep(GraphStep, CompiledStep):
    """Launches the compiled step as one CUDA graph."""


def compile_regions(model: nn.Module) -> list[tuple[nn.Module, Callable[..., Any]]]:
    """Return the modules to compile, each with its compiled forward; the model is not changed."""
    regions = getattr(model, "regions", ()) or (type(model).__name__,)
    chosen = [
        module
        for name, module in model.named_modules()
        if type(module).__name__ in regions or name in regions
    ]
    kinds = {type(module) for module in chosen}
    compiled = {kind: torch.compile(kind.forward, fullgraph=True, dynamic=False) for kind in kinds}
    return [(module, partial(compiled[type(module)], module)) for module in chosen]


def configure_compiler() -> None:
    """Keep torch's compiler from choosing kernels by their measured speed.

    Its deterministic mode fixes the shape of reductions, but still measures several shapes of a
    pointwise kernel. With that on, runs compiled in different processes were seen to differ. The
    likely reason: the number of elements per thread decides which products and sums are fused into
    a single rounding.
    """
    for module, settings in _find_compiler_settings():
        for name, value in settings.items():
            setattr(module, name, value)


@contextmanager
def preserve_compiler_settings() -> Iterator[None]:
    """Restore what `configure_compiler` changes, at the end of a `with` block."""
    found = _find_compiler_settings()
    before = [{name: getattr(module, name) for name in settings} for module, settings in found]
    try:
        yield
    finally:
        for (module, _), values in zip(found, before, strict=True):
            for name, value in values.items():
                setattr(module, name, value)


def allow_recompiling() -> None:
    """Let one function be compiled for many models, or a block for each shape it has in one."""
    import torch._dynamo.config

    dynamo: Any = torch._dynamo.config
    dynamo.recompile_limit = MOST_COMPILATIONS


def _find_compiler_settings() -> list[tuple[Any, dict[str, Any]]]:
    import torch._dynamo.config
    import torch._inductor.config

    inductor: Any = torch._inductor.config
    return [
        (
            inductor,
            {"deterministic": True, "max_autotune": False, "coordinate_descent_tuning": False},
        ),
        (inductor.triton, {"autotune_pointwise": False}),
        (torch._dynamo.config, {"recompile_limit": MOST_COMPILATIONS}),
    ]


STEP_MODES: dict[str, type[Step]] = {"eager": Step, "graph": GraphStep, "compiled": CompiledStep}


def make_step(problem: TrainingProblem) -> Step:
    """Return the step of the configuration's execution.mode, or that of a group of processes."""
    if problem.group is not None:
        from seedless.train.shared_step import SharedStep

        return SharedStep(problem)
    step_type = choose("execution mode", problem.config.execution.mode, STEP_MODES)
    if step_type is CompiledStep and problem.device.type == "cuda":
        step_type = CompiledGraphStep
    return step_type(problem)
