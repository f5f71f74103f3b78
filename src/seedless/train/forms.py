"""The forms a step can take: eager, captured as a CUDA graph, or compiled.

A captured step launches the kernels of the eager one and has its bits. A compiled step is another
arithmetic: its kernels are fused, so sums and products round at other places.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.core.registry import choose
from seedless.train.problem import Problem
from seedless.train.state import collect_state
from seedless.train.step import Step

WARM_UP = 3  # steps before a capture, in which libraries make what they make once


@dataclass(frozen=True, eq=False)
class Captured:
    """One captured step: what it reads, the graph, and what it writes."""

    samples: Tensor | None
    rows: Tensor
    graph: torch.cuda.CUDAGraph
    losses: Tensor


class GraphStep(Step):
    """Launches the whole step as one CUDA graph, captured once for each size of batch.

    An epoch has at most two sizes: the batch and what is left at its end.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.epoch = torch.zeros((), dtype=torch.int64, device=problem.device)
        self.captured: dict[int, Captured] = {}
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

    def capture(self, samples: Tensor | None, rows: Tensor) -> Captured:
        """Capture a step; the state is put back to what it was before the warm-up."""
        rows = rows.clone()
        samples = None if samples is None else samples.clone()
        state = collect_state(self.problem.model, self.problem.optimizer)
        before = {name: tensor.clone() for name, tensor in state.items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.update(samples, rows, self.epoch)
        torch.cuda.current_stream().wait_stream(side)
        self.problem.optimizer.zero_grad(set_to_none=True)
        for name, tensor in state.items():
            tensor.copy_(before[name])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            losses = self.update(samples, rows, self.epoch)
        return Captured(samples, rows, graph, losses)


class CompiledStep(Step):
    """Fuses forward and backward with torch.compile."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        settle_compiler()
        self._compiled = torch.compile(problem.loss.__call__, dynamic=False, fullgraph=True)

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Make a step; the epoch goes in as a tensor, or each one would be compiled anew."""
        return self.update(self.take(rows), rows, torch.tensor(epoch, device=rows.device))

    def evaluate(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the losses (B,), computed by fused kernels."""
        losses: Tensor = self._compiled(self.problem.model, samples, labels)
        return losses


class CompiledGraphStep(GraphStep, CompiledStep):
    """Compiled kernels, launched as one CUDA graph."""


def settle_compiler() -> None:
    """Keep the compiler from choosing kernels by how fast they happen to be."""
    from torch._inductor import config

    config.deterministic = True
    config.max_autotune = False
    config.coordinate_descent_tuning = False


FORMS: dict[str, type[Step]] = {"eager": Step, "graph": GraphStep, "compiled": CompiledStep}


def make_step(problem: Problem) -> Step:
    """Return the step in the form the configuration asks for."""
    form = choose("execution mode", problem.config.execution.mode, FORMS)
    if form is CompiledStep and problem.device.type == "cuda":
        form = CompiledGraphStep
    return form(problem)
