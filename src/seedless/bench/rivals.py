"""The rivals: our training step in each mode and precision, and the steps that people write.

All start from the same weights, take the same batches of samples on the device, and have the same
loss, optimizer and learning rate. They differ in how the step is written and launched. Plain steps
have torch's own layers: one kernel after another, or compiled as someone in a hurry does it, with
CUDA graphs and the fused optimizer; and with the channels last where the samples are images.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seedless.bench.flags import (
    TORCH_DEFAULT,
    SetFlags,
    use_nondeterministic_flags,
    use_plain_flags,
    use_published_flags,
)
from seedless.bench.plain_models import make_plain
from seedless.core.config import Config
from seedless.core.errors import ConfigError
from seedless.numerics.determinism import make_deterministic
from seedless.train.arithmetic import autocast_for
from seedless.train.optimizer import OPTIMIZERS, make_optimizer
from seedless.train.step_modes import GraphStep, allow_recompiling, make_step
from seedless.train.training_problem import TrainingProblem

OURS, PLAIN, PUBLISHED, LOOSE = "ours", "plain", "plain deterministic", "mode off"


@dataclass(frozen=True, eq=False)
class Runner:
    """A model with its first weights, and the function that makes one step on training rows (B,).

    ``captured``: the first step reserves the memory of all steps. ``optimizer``: of a plain model.
    """

    model: nn.Module
    step: Callable[[Tensor], Tensor]
    captured: bool = False
    optimizer: torch.optim.Optimizer | None = None


@dataclass(frozen=True, eq=False)
class Rival:
    """One way to train.

    Attributes:
        kind: ours, plain, plain deterministic, or ours with deterministic mode off.
        precision: "fp32", "tf32", "bf16", or torch's default, TF32 in convolutions alone.
        set_flags: sets the global flags it runs under.
        make: returns a fresh runner; called under those flags.
    """

    name: str
    kind: str
    precision: str
    set_flags: SetFlags
    make: Callable[[], Runner]


def list_rivals(problem: TrainingProblem) -> list[Rival]:
    """Return all rivals this device has, ours first; the problem's model stays untouched."""
    threads = problem.config.execution.threads or 1
    cuda = problem.device.type == "cuda"
    modes = ("eager", "graph", "compiled") if cuda else ("eager", "compiled")
    precisions = ("fp32", "tf32", "bf16") if cuda else ("fp32",)
    rivals = [
        Rival(
            name=f"ours {mode} {precision}",
            kind=OURS,
            precision=precision,
            set_flags=partial(make_deterministic, threads=threads, tf32=precision == "tf32"),
            make=partial(make_our_runner, problem, mode, precision),
        )
        for precision in precisions
        for mode in modes
    ]
    rivals += [
        Rival(
            name=f"ours {mode} fp32, deterministic mode off",
            kind=LOOSE,
            precision="fp32",
            set_flags=partial(use_nondeterministic_flags, threads=threads),
            make=partial(make_our_runner, problem, mode, "fp32"),
        )
        for mode in (modes[1:] if cuda else modes)
    ]
    return rivals + list_plain_rivals(problem, precisions)


def list_plain_rivals(problem: TrainingProblem, precisions: Sequence[str]) -> list[Rival]:
    """Return the steps with torch's own layers, those that are compiled first."""
    threads = problem.config.execution.threads or 1
    # As torch lays samples out by itself: ours keeps images with the channels last on a GPU.
    samples = problem.in_memory.expand().contiguous()
    layouts = (False, True) if samples.ndim == 4 else (False,)
    rivals = [
        Rival(
            name=f"plain {'compiled' if compiled else 'eager'} {precision}"
            + ", channels last" * channels_last,
            kind=PLAIN,
            precision=precision,
            set_flags=partial(use_plain_flags, threads=threads, precision=precision),
            make=partial(
                make_plain_runner,
                problem,
                samples,
                precision=precision,
                compiled=compiled,
                channels_last=channels_last,
            ),
        )
        for precision in precisions
        for compiled in (True, False)
        for channels_last in layouts
    ]
    if problem.device.type == "cuda":  # elsewhere torch's default is fp32
        rivals.append(
            Rival(
                name="plain eager, torch's defaults",
                kind=PLAIN,
                precision=TORCH_DEFAULT,
                set_flags=partial(use_plain_flags, threads=threads),
                make=partial(make_plain_runner, problem, samples),
            )
        )
    published = partial(make_plain_runner, problem, samples, deterministic=True)
    flags = partial(use_published_flags, threads=threads)
    rivals.append(Rival(PUBLISHED, PUBLISHED, "fp32", flags, published))
    return rivals


def choose_rivals(rivals: Sequence[Rival], only: Sequence[str]) -> list[Rival]:
    """Return the rivals whose names contain one of these texts; all where there are no texts."""
    for text in only:
        if not any(text in rival.name for rival in rivals):
            known = "; ".join(rival.name for rival in rivals)
            raise ConfigError(f"--only {text!r} names no rival; on this device there are: {known}")
    return [rival for rival in rivals if not only or any(text in rival.name for text in only)]


def check_comparable(config: Config) -> None:
    """Refuse settings that the plain step does not have, or that rivals go through in turn."""
    default = Config()
    for section, key in (
        ("train", "microbatch"),
        ("train", "clip_norm"),
        ("augment", "padding"),
        ("augment", "flip"),
        ("control", "flip_bit"),
        ("execution", "storage"),
    ):
        if getattr(getattr(config, section), key) != getattr(getattr(default, section), key):
            raise ConfigError(
                f"{section}.{key} is not part of the step that bench compares; leave it out"
            )
    for key in ("mode", "precision"):
        if getattr(config.execution, key) != getattr(default.execution, key):
            raise ConfigError(
                f"bench takes every execution.{key} in turn; leave it out and choose with --only"
            )


def make_our_runner(problem: TrainingProblem, mode: str, precision: str) -> Runner:
    """Return a fresh copy of the problem's model with our step in one form."""
    config = problem.config.change(execution={"mode": mode, "precision": precision})
    model = copy.deepcopy(problem.model).train()
    optimizer = make_optimizer(config.train, model.parameters(), problem.device)
    step = make_step(replace(problem, config=config, model=model, optimizer=optimizer))
    return Runner(model, partial(step, epoch=0), isinstance(step, GraphStep))


def make_plain_runner(
    problem: TrainingProblem,
    samples: Tensor,
    *,
    precision: str = "fp32",
    compiled: bool = False,
    channels_last: bool = False,
    deterministic: bool = False,
) -> Runner:
    """Return the model with torch's own layers and the usual training step, seeded with 0.

    Args:
        samples: (n, ...) on the device, as torch lays them out by itself.
        precision: with "bf16" the forward pass runs under autocast; TF32 is a flag of the process.
        compiled: forward and backward by torch.compile, as CUDA graphs on a GPU; fused optimizer.
        channels_last: images and weights are stored with the channels last.
        deterministic: as `make_plain` takes it.
    """
    torch.manual_seed(0)
    train, labels = problem.config.train, problem.in_memory.labels
    model = make_plain(problem.model, deterministic=deterministic).train()
    options: dict[str, Any] = {"lr": train.rate, "weight_decay": train.weight_decay}
    if train.optimizer == "sgd":
        options["momentum"] = train.momentum or 0.0
    if channels_last:
        for parameter in model.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    if compiled:
        options["fused"] = True
    optimizer = OPTIMIZERS[train.optimizer](model.parameters(), **options)

    def compute_loss(samples: Tensor, labels: Tensor) -> Tensor:
        return problem.loss(model, samples, labels).mean()

    compute = compute_loss
    if compiled:
        allow_recompiling()  # each runner's model is another one
        compute = torch.compile(compute_loss, mode="reduce-overhead")

    def step(rows: Tensor) -> Tensor:
        batch = samples[rows]
        if channels_last:
            batch = batch.contiguous(memory_format=torch.channels_last)
        if compiled:  # what the last step left in the memory of its CUDA graphs is not needed
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]  # untyped in torch
        with autocast_for(precision, problem.device):
            loss = compute(batch, labels[rows])
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return Runner(model, step, optimizer=optimizer)
