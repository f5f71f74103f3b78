"""Whole training steps with the fused block in the conformer, beside ours and the plain one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.fused_block.block import describe_shape, run_block
from benchmarks.fused_block.choices import choose_variants
from benchmarks.fused_block.flat_optimizer import flatten
from benchmarks.fused_block.tiles import BlockShape, Variant
from seedless.bench.comparison import make_config
from seedless.bench.rivals import Rival, Runner, list_rivals
from seedless.models.conformer import Bottleneck
from seedless.numerics.determinism import make_deterministic
from seedless.runs.prepare import prepare
from seedless.train.optimizer import make_optimizer
from seedless.train.step_modes import CompiledStep, GraphStep, make_step
from seedless.train.training_problem import TrainingProblem

FUSED = "ours fused"
Choose = Callable[[BlockShape, str], tuple[Variant, Variant]]


def prepare_conformer(device: str, batch: int, small: bool) -> TrainingProblem:
    """Return the conformer on simulated recordings, full size or small."""
    settings = ["model.small=true", "execution.threads=1"] if small else []
    return prepare(make_config("conformer", batch, device, settings)).problem


def make_fused_runner(
    problem: TrainingProblem,
    precision: str,
    *,
    flat: bool = False,
    choose: Choose = choose_variants,
) -> Runner:
    """Return a fresh copy of the problem's model with our compiled step and the fused block.

    On a CPU, for the interpreter, everything but the block runs in eager mode.
    """
    config = problem.config.change(execution={"mode": "compiled", "precision": precision})
    model = copy.deepcopy(problem.model).train()
    pieces: dict[Any, Tensor] = {}
    if flat:
        optimizer, pieces = flatten(model, config.train, problem.device)
    else:
        optimizer = make_optimizer(config.train, model.parameters(), problem.device)
    step = make_step(replace(problem, config=config, model=model, optimizer=optimizer))
    if not isinstance(step, CompiledStep):
        raise TypeError(f"expected a compiled step, got {type(step).__name__}")
    on_cpu = problem.device.type == "cpu"
    step.compiled = [
        (module, partial(call_block, module, precision, choose, pieces.get(module)))
        if isinstance(module, Bottleneck)
        else (module, forward)
        for module, forward in step.compiled
        if isinstance(module, Bottleneck) or not on_cpu
    ]
    return Runner(model, partial(step, epoch=0), isinstance(step, GraphStep))


def call_block(
    block: Bottleneck, precision: str, choose: Choose, flat: Tensor | None, x: Tensor
) -> Tensor:
    """Return the output of a block, computed by the fused kernels with the chosen variants."""
    variants = choose(describe_shape(block, x.shape[1]), precision)
    return run_block(block, x.float(), variants, precision, flat)


def list_step_rivals(
    problem: TrainingProblem, precision: str, choose: Choose = choose_variants
) -> list[Rival]:
    """Return the steps of one precision: fused, fused with flat memory, ours, plain compiled."""
    threads = problem.config.execution.threads or 1
    flags = partial(make_deterministic, threads=threads, tf32=precision == "tf32")
    rivals = [
        Rival(
            name=f"{FUSED} {precision}" + ", flat memory" * flat,
            kind="ours",
            precision=precision,
            set_flags=flags,
            make=partial(make_fused_runner, problem, precision, flat=flat, choose=choose),
        )
        for flat in (False, True)
    ]
    if problem.device.type == "cpu":  # the others would be compiled for minutes
        return rivals
    wanted = (f"ours compiled {precision}", f"plain compiled {precision}")
    return rivals + [rival for rival in list_rivals(problem) if rival.name in wanted]


def find_batches(problem: TrainingProblem) -> list[Tensor]:
    """Return the training rows of every whole batch of an epoch, on the device."""
    size = problem.config.order.batch_size
    batches = [
        torch.from_numpy(rows).to(problem.device)
        for rows in problem.order.schedule(0).batches
        if len(rows) == size
    ]
    if not batches:
        raise ValueError(f"expected at least one whole batch of {size} samples, got none")
    return batches
