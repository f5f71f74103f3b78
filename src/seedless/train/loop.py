"""The one training loop. Training, resuming, verifying and locating a difference all run this.

    schedule -> step -> rate -> evaluate every k epochs -> select on validation -> observers

Everything it computes is a pure function of the problem and of where it starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seedless.core.errors import ConfigError, TrainError
from seedless.core.registry import choose
from seedless.numerics.generators import GeneratorGuard
from seedless.train.control import flip_bit, read_target
from seedless.train.forms import make_step
from seedless.train.optim import rate_at, set_rate
from seedless.train.predict import predict
from seedless.train.problem import Problem
from seedless.train.progress_state import Best, Moment, Observer, Position, Start
from seedless.train.state import fetch_state, name_tensors
from seedless.train.step import Step


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended: its last moment, and whether it was asked to stop before its end."""

    last: Moment
    stopped: bool = False

    @property
    def best(self) -> Best:
        """The weights the run selected."""
        if self.last.best is None:
            raise TrainError("no epoch was finished, so no weights were selected")
        return self.last.best


def train(
    problem: Problem,
    observers: Sequence[Observer] = (),
    *,
    start: Start | None = None,
    until: Position | None = None,
    stop: Callable[[], bool] = lambda: False,
    step: Step | None = None,
) -> Outcome:
    """Run a problem to its end, and tell the observers about it.

    Args:
        problem: what to train; its model, optimizer and order hold the state to start from.
        observers: told of the beginning, every step and every epoch, in this order.
        start: where the state stands; by default before the first step.
        until: stop once this many epochs, or within one this many batches, are done.
        stop: asked after every step; a true answer ends the run between two steps.
        step: what makes a step; by default the form that the configuration asks for.
    """
    config, order = problem.config.train, problem.order
    start = start or Start()
    step = step or make_step(problem)
    guard = GeneratorGuard()
    check_settings(problem)
    moment = Moment(problem, start.position, start.losses, start.best, moved=start.moved)
    for observer in observers:
        observer.begin(moment)

    problem.model.train()
    for epoch in range(start.position.epoch, config.epochs):
        schedule = order.schedule(epoch)
        batches = join_single(schedule.batches)
        edges = np.cumsum([0, *map(len, batches)]).tolist()
        rows = torch.from_numpy(np.concatenate(batches)).to(problem.device)
        losses = torch.zeros(len(rows), device=problem.device)
        losses[: len(start.losses)] = start.losses.to(problem.device)
        moment = replace(
            moment,
            losses=losses,
            loss=None,
            score=None,
            schedule=schedule.digest,
            rate=rate_at(config, epoch, max(0, moment.position.step - 1)),
            batches=len(batches),
            seen=len(start.losses),
        )

        # Empty where a run was stopped after the last batch of an epoch and goes on from there.
        for batch in range(moment.position.batch, len(batches)):
            position, (begin, end) = moment.position, edges[batch : batch + 2]
            rate = rate_at(config, epoch, position.step)
            set_rate(problem.optimizer, rate)
            sabotage(problem, position.step)
            losses[begin:end] = step(rows[begin:end], epoch)
            moment = replace(
                moment,
                position=Position(epoch, batch + 1, position.step + 1),
                rate=rate,
                seen=end,
            )
            if problem.device.type == "cpu":  # on a GPU, looking would stop it
                check_losses(problem, losses[begin:end], batches[batch], moment.position)
            for observer in observers:
                observer.step(moment)
            if stop():
                return _halt(moment, observers, guard)
            if until == moment.position and batch + 1 < len(batches):
                return Outcome(moment)

        start = Start()
        moment = finish_epoch(moment, batches, guard)
        for observer in observers:
            observer.epoch(moment)
        if until is not None and moment.position.epoch >= until.epoch and not until.batch:
            break
    return Outcome(moment)


def _halt(moment: Moment, observers: Sequence[Observer], guard: GeneratorGuard) -> Outcome:
    moment = replace(moment, moved=_watch(moment, guard, f"by step {moment.position.step}"))
    for observer in observers:
        observer.stop(moment)
    return Outcome(moment, stopped=True)


def _watch(moment: Moment, guard: GeneratorGuard, where: str) -> tuple[str, ...]:
    """Return all generators that moved so far, or refuse to go on, as the run was told."""
    if moment.problem.config.train.guard == "refuse":
        guard.check(where)
    return tuple(sorted({*moment.moved, *guard.moved()}))


def finish_epoch(
    moment: Moment, batches: Sequence[NDArray[np.int64]], guard: GeneratorGuard
) -> Moment:
    """Check the epoch's losses, hand them to the order, evaluate, and select."""
    problem, config = moment.problem, moment.problem.config.train
    epoch, steps = moment.position.epoch + 1, moment.position.step
    losses = moment.losses.cpu()
    parts = [] if losses.isfinite().all() else torch.split(losses, [len(rows) for rows in batches])
    for batch, part in enumerate(parts):
        position = Position(epoch - 1, batch + 1, steps - len(batches) + batch + 1)
        check_losses(problem, part, batches[batch], position)
    moved = _watch(moment, guard, f"by the end of epoch {epoch}")
    if problem.order.needs_losses:
        by_row = np.zeros(len(problem.train), dtype=np.float64)
        by_row[np.concatenate(batches)] = losses.double().numpy()
        problem.order.observe(by_row)
    score = None
    if epoch % config.evaluate_every == 0 or epoch == config.epochs:
        score = evaluate(problem)
    return replace(
        moment,
        position=Position(epoch, 0, steps),
        loss=math.fsum(losses.double().tolist()) / len(losses),
        score=score,
        best=select(problem, moment.best, epoch, score),
        moved=moved,
    )


def evaluate(problem: Problem) -> float | None:
    """Return the validation score, or None where there is nothing to validate on."""
    if problem.val is None:
        return None
    probabilities = predict(problem.model, problem.val, problem.loss, problem.config)
    return problem.score(probabilities, problem.val.labels.cpu().numpy().astype(np.uint8))


def select(problem: Problem, best: Best | None, epoch: int, score: float | None) -> Best | None:
    """Return the weights to keep: the first of the best score, or the last where none is scored."""
    last = epoch == problem.config.train.epochs
    if score is None:
        improved = last and best is None
    else:
        improved = best is None or best.score is None or score > best.score
    if not improved:
        return best
    weights = {name: tensor.detach() for name, tensor in name_tensors(problem.model).items()}
    plain = torch.contiguous_format
    fetched = fetch_state(weights)
    copies = {name: tensor.clone(memory_format=plain) for name, tensor in fetched.items()}
    return Best(epoch, score, copies)


def join_single(batches: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], ...]:
    """Let a last batch of one sample join the batch before it: BatchNorm cannot train on one."""
    if len(batches) > 1 and len(batches[-1]) == 1 and len(batches[-2]) > 1:
        return (*batches[:-2], np.concatenate(batches[-2:]))
    return tuple(batches)


def check_settings(problem: Problem) -> None:
    """Refuse settings of the loop's own that name nothing."""
    choose("guard", problem.config.train.guard, dict.fromkeys(("refuse", "report")))
    control = problem.config.control
    if control.flip_bit is not None:
        read_target(problem.model, control.flip_bit)
        steps = len(join_single(problem.order.schedule(0).batches)) * problem.config.train.epochs
        if control.at_step >= steps:
            raise ConfigError(f"control.at_step is {control.at_step}; the run has {steps} steps")


def sabotage(problem: Problem, step: int) -> None:
    """Flip a bit where the configuration asks for this negative control."""
    control = problem.config.control
    if control.flip_bit is not None and step == control.at_step:
        flip_bit(problem.model, control.flip_bit)


def check_losses(
    problem: Problem, losses: Tensor, rows: NDArray[np.int64], position: Position
) -> None:
    """Stop a run whose loss is no number, and say at which step and on which samples."""
    bad = ~torch.isfinite(losses)
    if not bad.any():
        return
    split, found = problem.train, rows[bad.cpu().numpy()]
    names = split.ids[found].tolist()
    if split.rows is not None:
        names = [f"train[{row}]" for row in sorted(split.rows[found])]
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise TrainError(
        f"the loss is not finite at step {position.step} (epoch {position.epoch + 1}, batch "
        f"{position.batch}): {len(names)} of its {len(rows)} samples, {shown}. The run stops here; "
        "try a lower train.rate, train.warmup_steps or train.clip_norm"
    )
