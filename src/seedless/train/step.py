"""One training step: augment, forward, loss, backward, clip the gradient, update."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from seedless.data.augment import crop_and_flip
from seedless.numerics.active_keys import dropout_keys
from seedless.train.arithmetic import autocast_for, compute_in, make_batch_splitter
from seedless.train.optimizer import apply_step
from seedless.train.training_problem import StreamedSplit, TrainingProblem
from seedless.train.user_loss import spread_loss
from seedless.train.user_optimizer import (
    USER_FUNCTION,
    check_user_step,
    describe_groups,
    read_numbers,
)

Phase = Callable[[str], AbstractContextManager[None]]


def no_phase(_: str) -> AbstractContextManager[None]:
    """Return a context that does nothing, for steps whose phases nobody watches."""
    return nullcontext()


class Step:
    """Trains a problem's model on one batch at a time.

    Args:
        phase: returns a context for each phase of a step, "forward", "backward" or "optimizer", so
            that a profile or a trace can distinguish them.
    """

    def __init__(self, problem: TrainingProblem, phase: Phase = no_phase) -> None:
        self.problem = problem
        self.phase = phase
        self.trained = [p for group in problem.optimizer.param_groups for p in group["params"]]
        self.splitter = make_batch_splitter(problem.config, self.trained)
        is_users = problem.config.train.optimizer == USER_FUNCTION
        self.groups = describe_groups(problem.optimizer) if is_users else None
        self.numbers = read_numbers(problem.optimizer)

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Train on the rows (B,) of the training split; return their losses (B,), on the device."""
        return self.update(self.copy_from_host(rows), rows, epoch)

    def copy_from_host(self, rows: Tensor) -> Tensor | None:
        """Return the samples of rows (B,), copied to the device.

        None if they are there already, and for a streamed split, which is read in the forward pass.
        """
        split = self.problem.train
        if isinstance(split, StreamedSplit) or split.samples.device == rows.device:
            return None
        copied = split.samples[rows.cpu()].pin_memory().to(rows.device, non_blocking=True)
        return copied if split.values is None else split.as_input(copied)

    def update(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Train on a batch: everything runs on the device and nothing waits for the device.

        The gradient is that of the batch's mean loss, accumulated over micro-batches where the
        configuration has them.
        """
        train = self.problem.config.train
        self.clear_gradients()
        with compute_in(self.problem.config.execution.arithmetic):
            compute = self.add_gradients if self.splitter is None else self.add_split_gradients
            losses = compute(samples, rows, epoch)
            with self.phase("optimizer"):
                if train.clip_norm is not None:
                    torch.nn.utils.clip_grad_norm_(self.trained, train.clip_norm)
                apply_step(self.problem.optimizer)
        if self.groups is not None:
            check_user_step(self.problem.optimizer, self.groups, self.numbers)
        return losses

    def add_gradients(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Add up the gradient of the mean loss over micro-batches; return the losses (B,)."""
        batch_losses = []
        batch_key = self.make_batch_key(rows)
        size = self.problem.config.train.microbatch or len(rows)
        for index, part in enumerate(torch.split(rows, size)):
            inputs = None if samples is None else samples[index * size :][: len(part)]
            losses = self.forward(inputs, part, epoch, batch_key)
            with self.phase("backward"):
                torch.autograd.backward(average(losses, len(part), len(rows)))
            batch_losses.append(spread_loss(losses.detach(), len(part)))
        return torch.cat(batch_losses)

    def add_split_gradients(
        self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int
    ) -> Tensor:
        """Do the same in portable arithmetic, with bits that do not depend on the micro-batches."""
        assert self.splitter is not None
        batch_losses: list[Tensor] = []
        batch_key = self.make_batch_key(rows)

        def forward(part: Tensor, inputs: Tensor | None = None) -> Tensor:
            return self.forward(inputs, part, epoch, batch_key)

        def average(losses: Tensor, *_: Tensor) -> Tensor:
            batch_losses.append(losses.detach())
            return losses.sum() / len(losses)

        batch = (rows,) if samples is None else (rows, samples)
        with self.phase("backward"):
            self.splitter.step(forward, average, *batch)
        return batch_losses[-1]

    def clear_gradients(self) -> None:
        """Remove the gradients of the previous step."""
        for parameter in self.trained:
            parameter.grad = None

    def make_batch_key(self, rows: Tensor) -> Tensor | None:
        """Return the key of the draws that all samples of a batch share, as that of LayerDrop.

        It is what they take by themselves where the batch is whole: the sum of its samples' keys.
        None leaves it to them.
        """
        return self.problem.keys[rows].sum() if self.problem.config.train.microbatch else None

    def forward(
        self, samples: Any, rows: Tensor, epoch: Tensor | int, batch_key: Tensor | None = None
    ) -> Tensor:
        """Return the losses (B,) of the rows, with the epoch's augmentation and dropout.

        A user's loss may be a single one for the whole batch, of shape ().
        """
        problem, augment = self.problem, self.problem.config.augment
        split, precision = problem.train, problem.config.execution.precision
        with self.phase("forward"):
            if samples is None:
                samples, labels = split.read(rows, epoch)
            else:
                labels = problem.in_memory.labels[rows]
            keys = problem.keys[rows]
            if augment.padding or augment.flip:
                samples = crop_and_flip(
                    samples, samples=keys, epoch=epoch, padding=augment.padding, flip=augment.flip
                )
            with (
                dropout_keys(samples=keys, epoch=epoch, step=batch_key),
                autocast_for(precision, rows.device),
            ):
                return self.evaluate(samples, labels)

    def evaluate(self, samples: Any, labels: Any) -> Tensor:
        """Return the losses (B,) of samples as the model receives them."""
        return self.problem.loss(self.problem.model, samples, labels)


def average(losses: Tensor, samples: int, total: int) -> Tensor:
    """Return what the samples of a micro-batch add to the mean loss of a batch of ``total``.

    The losses are one for each sample, (B,), or a single one, (), the mean of so many samples. That
    of a whole batch is returned as it is, so that its gradient is the one of `loss.backward()`.
    """
    if losses.ndim:
        return losses.sum() / total
    return losses if samples == total else losses * (samples / total)
