"""The forms a step can take: eager, captured as a CUDA graph, or compiled.

A captured step launches the kernels of the eager one and has its bits. A compiled step is another
arithmetic: its kernels are fused, so sums and products round at other places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.registry import choose
from seedless.train.state_tensors import collect_state
from seedless.train.step import Step
from seedless.train.training_problem import TrainingProblem

WARM_UP_STEPS = 3  # steps before a capture, in which libraries make what they make once


@dataclass(frozen=True, eq=False)
class CapturedStep:
    """One captured step: what it reads, the graph, and what it writes."""

    samples: Tensor | None
    rows: Tensor
    graph: torch.cuda.CUDAGraph
    losses: Tensor


class GraphStep(Step):
    """Launches the whole step as one CUDA graph, captured once for each size of batch.

    An epoch has at most two sizes: the batch and what is left at its end.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        super().__init__(problem)
        self.epoch = torch.zeros((), dtype=torch.int64, device=problem.device)
        self.captured: dict[int, CapturedStep] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Make a step on the training rows (B,); return their losses (B,), good until the next."""
        samples = self.take(rows)
        self.epoch.fill_(epoch)
        found = self.captured.get(len(rows))
        if found is None:
            found = self.captured[len(rows)] = self.capture(samples, rows)
        found.rows.copy_(rows)
        if found.samples is not None and samples is not None:
            found.samples.copy_(samples)
        found.graph.replay()
        return found.losses

    def capture(self, samples: Tensor | None, rows: Tensor) -> CapturedStep:
        """Capture a step; the state is put back to what it was before the warm-up."""
        rows = rows.clone()
        samples = None if samples is None else samples.clone()
        state = collect_state(self.problem.model, self.problem.optimizer)
        before = {name: tensor.clone() for name, tensor in state.items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self.update(samples, rows, self.epoch)
        torch.cuda.current_stream().wait_stream(side)
        self.drop_gradients()
        for name, tensor in state.items():
            tensor.copy_(before[name])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            losses = self.update(samples, rows, self.epoch)
        return CapturedStep(samples, rows, graph, losses)


class CompiledStep(Step):
    """Fuses forward and backward of each region of the model with torch.compile.

    A model declares its regions; one that declares none is compiled as a whole. Repeated blocks of
    one shape are compiled once. Only full batches use them: to compile anew for the short one at
    an epoch's end takes as long as thousands of steps. It and evaluation stay eager.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        super().__init__(problem)
        configure_compiler()
        self.fused = compile_regions(problem.model)
        batch = min(problem.order.batch_size, len(problem.order))
        self.size = min(batch, problem.config.train.microbatch or batch)

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Make a step; the epoch goes in as a tensor, or each one would be compiled anew."""
        return self.update(self.take(rows), rows, torch.tensor(epoch, device=rows.device))

    def evaluate(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the losses (B,), of a full batch by fused kernels."""
        if len(labels) != self.size:
            return super().evaluate(samples, labels)
        for module, forward in self.fused:
            module.forward = forward
        try:
            return super().evaluate(samples, labels)
        finally:
            for module, _ in self.fused:
                del module.forward


class CompiledGraphStep(GraphStep, CompiledStep):
    """Compiled kernels, launched as one CUDA graph."""


def compile_regions(model: nn.Module) -> list[tuple[nn.Module, Callable[..., Any]]]:
    """Return the modules to compile, each with its compiled forward; nothing is changed yet."""
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
    """Keep the compiler from choosing kernels by how fast they happen to be.

    Its deterministic mode fixes the shape of reductions, and still times several shapes of a
    pointwise kernel. Runs compiled apart were seen to differ with that on. The likely reason is
    that the elements a thread has decide which products and sums contract to one rounding.
    """
    import torch._dynamo.config
    import torch._inductor.config

    inductor: Any = torch._inductor.config
    inductor.deterministic = True
    inductor.triton.autotune_pointwise = False
    inductor.max_autotune = False
    inductor.coordinate_descent_tuning = False
    # One for each shape that a kind of block has.
    dynamo: Any = torch._dynamo.config
    dynamo.recompile_limit = 64


STEP_MODES: dict[str, type[Step]] = {"eager": Step, "graph": GraphStep, "compiled": CompiledStep}


def make_step(problem: TrainingProblem) -> Step:
    """Return the step in the form the configuration asks for."""
    form = choose("execution mode", problem.config.execution.mode, STEP_MODES)
    if form is CompiledStep and problem.device.type == "cuda":
        form = CompiledGraphStep
    return form(problem)
