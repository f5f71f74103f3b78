"""The one training loop: training, resuming, verifying and locating a difference all call it.

    schedule -> learning rate -> step -> evaluate every k epochs -> select weights -> observers

Everything it computes is a pure function of the problem and of where it starts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seedless.core.digests import name_tensors
from seedless.core.errors import ConfigError, TrainError, TrainingDivergedError
from seedless.core.registry import choose
from seedless.core.setting_choices import GUARDS
from seedless.numerics.generator_guard import GeneratorGuard
from seedless.train.bit_flip import flip_bit, parse_target
from seedless.train.draw_check import check_step_draws
from seedless.train.learning_rate import learning_rate_at, set_group_rates
from seedless.train.loss import Loss
from seedless.train.prediction import predict
from seedless.train.process_group import is_any
from seedless.train.progress_state import BestWeights, Observer, Position, ProgressState, Start
from seedless.train.shards import list_readings
from seedless.train.state_tensors import fetch_state
from seedless.train.step_modes import make_step
from seedless.train.streamed_evaluation import evaluate_split
from seedless.train.training_problem import StreamedSplit, TrainingProblem

STEPS_BETWEEN_STOPS = 8  # of a group of processes
ADVICE = "The run stops here; try a lower train.rate, train.warmup_steps or train.clip_norm"


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """How a run ended: its last state, and whether it was asked to stop before its end."""

    last: ProgressState
    stopped: bool = False

    @property
    def best(self) -> BestWeights:
        """The weights the run selected."""
        if self.last.best is None:
            raise TrainError("no epoch was finished, so no weights were selected")
        return self.last.best


def train(
    problem: TrainingProblem,
    observers: Sequence[Observer] = (),
    *,
    start: Start | None = None,
    until: Position | None = None,
    stop: Callable[[], bool] = lambda: False,
    step: Callable[[Tensor, int], Tensor] | None = None,
) -> TrainingOutcome:
    """Train a problem to its end, calling the observers on the way; return how it ended.

    Args:
        problem: what to train; its model, optimizer and order hold the state to start from.
        observers: called at the beginning, after every step and after every epoch, in this order.
        start: the position of that state; by default before the first step.
        until: the position to end at: after an epoch, or after a batch within one.
        stop: called after every step; a true answer ends the run between two steps.
        step: updates the model on training rows (B,) and returns their losses (B,), or one loss for
            all; by default a step in the mode of the configuration (eager, graph, compiled).

    Example:
        >>> outcome = train(problem, [LogWriter(folder)])
        >>> outcome.best.weights["head.weight"].shape
    """
    config, order = problem.config.train, problem.order
    start = start or Start()
    step = step or make_step(problem)
    guard = GeneratorGuard()
    check_settings(problem)
    progress = ProgressState(problem, start.position, start.losses, start.best, moved=start.moved)
    for observer in observers:
        observer.begin(progress)

    problem.model.train()
    for epoch in range(start.position.epoch, config.epochs):
        schedule = order.schedule(epoch)
        batches = merge_single_sample_batch(schedule.batches)
        edges = np.cumsum([0, *map(len, batches)]).tolist()
        rows = torch.from_numpy(np.concatenate(batches)).to(problem.device)
        losses = torch.zeros(len(rows), device=problem.device)
        losses[: len(start.losses)] = start.losses.to(problem.device)
        progress = replace(
            progress,
            losses=losses,
            loss=None,
            score=None,
            schedule=schedule.digest,
            rate=rates_at(problem, epoch, max(0, progress.position.step - 1))[0],
            batches=len(batches),
            seen=len(start.losses),
        )

        problem.train.expect(list_readings(problem, batches[progress.position.batch :]), epoch)
        # No batch is left where a run was stopped after an epoch's last batch and is resumed there.
        for batch in range(progress.position.batch, len(batches)):
            position, (begin, end) = progress.position, edges[batch : batch + 2]
            rates = rates_at(problem, epoch, position.step)
            set_group_rates(problem.optimizer, rates)
            flip_bit_if_asked(problem, position.step)
            losses[begin:end] = step(rows[begin:end], epoch)
            progress = replace(
                progress,
                position=Position(epoch, batch + 1, position.step + 1),
                rate=rates[0],
                seen=end,
            )
            if problem.device.type == "cpu":  # on a GPU, reading a loss would wait for the device
                check_losses(problem, losses[begin:end], batches[batch], progress.position)
            check_step_draws(progress, guard, partial(step, rows[begin:end], epoch))
            for observer in observers:
                observer.step(progress)
            if must_stop(progress, stop):
                return stop_early(progress, observers, guard)
            if until == progress.position and batch + 1 < len(batches):
                return TrainingOutcome(progress)

        start = Start()
        progress = finish_epoch(progress, batches, guard)
        for observer in observers:
            observer.epoch(progress)
        if until is not None and progress.position.epoch >= until.epoch and not until.batch:
            break
    return TrainingOutcome(progress)


def must_stop(progress: ProgressState, stop: Callable[[], bool]) -> bool:
    """Return whether the run was asked to stop; the processes of a group decide together.

    They ask each other at every 8th step only, since asking is one more message.
    """
    group = progress.problem.group
    if group is None:
        return stop()
    return progress.position.step % STEPS_BETWEEN_STOPS == 0 and is_any(stop(), group)


def stop_early(
    progress: ProgressState, observers: Sequence[Observer], guard: GeneratorGuard
) -> TrainingOutcome:
    """Call the observers' `stop` and return the outcome of a run that was asked to stop."""
    moved = check_generators(progress, guard, f"by step {progress.position.step}")
    progress = replace(progress, moved=moved)
    for observer in observers:
        observer.stop(progress)
    return TrainingOutcome(progress, stopped=True)


def check_generators(progress: ProgressState, guard: GeneratorGuard, where: str) -> tuple[str, ...]:
    """Return the global generators used so far; raise an error if train.guard is "refuse"."""
    if progress.problem.config.train.guard == "refuse":
        guard.check(where)
    return tuple(sorted({*progress.moved, *guard.moved()}))


def finish_epoch(
    progress: ProgressState, batches: Sequence[NDArray[np.int64]], guard: GeneratorGuard
) -> ProgressState:
    """Return the state after an epoch: check its losses, evaluate, select the best weights."""
    problem, config = progress.problem, progress.problem.config.train
    epoch, steps = progress.position.epoch + 1, progress.position.step
    # [Step 1] Stop a run whose losses are not finite, with the position of the first bad batch.
    losses = progress.losses.cpu()
    parts = [] if losses.isfinite().all() else torch.split(losses, [len(rows) for rows in batches])
    for batch, part in enumerate(parts):
        position = Position(epoch - 1, batch + 1, steps - len(batches) + batch + 1)
        check_losses(problem, part, batches[batch], position)
    # [Step 2] Orders that rank samples by their losses get them, one for each row of the data.
    if problem.order.needs_losses:
        by_row = np.zeros(len(problem.train), dtype=np.float64)
        by_row[np.concatenate(batches)] = losses.double().numpy()
        problem.order.observe(by_row)
    # [Step 3] Evaluate on the validation split, and keep the weights if they are the best so far.
    score = None
    if epoch % config.evaluate_every == 0 or epoch == config.epochs:
        score = evaluate(problem, epoch, steps)
    # [Step 4] No global generator may have been used, in the evaluation neither.
    moved = check_generators(progress, guard, f"by the end of epoch {epoch}")
    return replace(
        progress,
        position=Position(epoch, 0, steps),
        loss=math.fsum(losses.double().tolist()) / len(losses),
        score=score,
        best=select(problem, progress.best, epoch, score),
        moved=moved,
    )


def evaluate(problem: TrainingProblem, epoch: int, steps: int) -> float | None:
    """Return the validation score after an epoch, or None where there is no validation split.

    The last step of an epoch can ruin a model whose losses were all finite: the split shows it.
    """
    if problem.val is None:
        return None
    if isinstance(problem.val, StreamedSplit):
        loss = evaluate_split(problem, problem.val).loss
        if not math.isfinite(loss):
            raise TrainingDivergedError(
                f"the run diverged in epoch {epoch}, step {steps}: after it the validation loss is "
                f"{loss}. {ADVICE}"
            )
        return -loss  # a score is higher for a better model
    assert isinstance(problem.loss, Loss)
    assert problem.score is not None
    probabilities = predict(problem.model, problem.val, problem.loss, problem.config, problem.group)
    bad = int(np.isnan(probabilities).any(axis=1).sum())
    if bad:
        raise TrainingDivergedError(
            f"the run diverged in epoch {epoch}, step {steps}: after it the model gives NaN for "
            f"{bad} of the {len(probabilities)} validation samples. {ADVICE}"
        )
    return problem.score(probabilities, problem.val.labels.cpu().numpy().astype(np.uint8))


def select(
    problem: TrainingProblem, best: BestWeights | None, epoch: int, score: float | None
) -> BestWeights | None:
    """Return the best weights so far: the first of the highest score; without scores, the last."""
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
    return BestWeights(epoch, score, copies)


def merge_single_sample_batch(
    batches: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], ...]:
    """Return the batches with a last batch of one sample joined to the batch before it.

    BatchNorm cannot train on a batch of one sample.
    """
    if len(batches) > 1 and len(batches[-1]) == 1 and len(batches[-2]) > 1:
        return (*batches[:-2], np.concatenate(batches[-2:]))
    return tuple(batches)


def rates_at(problem: TrainingProblem, epoch: int, step: int) -> list[float]:
    """Return the learning rate of each parameter group at a step."""
    if problem.rates is not None:
        return problem.rates.rates_at(epoch, step)
    rate = learning_rate_at(problem.config.train, epoch, step)
    return [rate] * len(problem.optimizer.param_groups)


def check_settings(problem: TrainingProblem) -> None:
    """Refuse values of train.guard and control.* that do not exist in this run."""
    choose("guard", problem.config.train.guard, dict.fromkeys(GUARDS))
    control = problem.config.control
    if control.flip_bit is not None:
        parse_target(problem.model, control.flip_bit)
        steps = (
            len(merge_single_sample_batch(problem.order.schedule(0).batches))
            * problem.config.train.epochs
        )
        if control.at_step >= steps:
            raise ConfigError(f"control.at_step is {control.at_step}; the run has {steps} steps")


def flip_bit_if_asked(problem: TrainingProblem, step: int) -> None:
    """Flip a bit before the step that control.at_step names: the run's negative control."""
    control = problem.config.control
    if control.flip_bit is not None and step == control.at_step:
        flip_bit(problem.model, control.flip_bit)


def check_losses(
    problem: TrainingProblem, losses: Tensor, rows: NDArray[np.int64], position: Position
) -> None:
    """Stop a run whose loss is not finite, and say at which step and for which samples."""
    bad = ~torch.isfinite(losses)
    if not bad.any():
        return
    names = problem.train.name_samples(rows[bad.cpu().numpy()])
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise TrainingDivergedError(
        f"the run diverged in epoch {position.epoch + 1}, step {position.step} (batch "
        f"{position.batch}): the loss is not finite for {len(names)} of its {len(rows)} samples, "
        f"{shown}. {ADVICE}"
    )
