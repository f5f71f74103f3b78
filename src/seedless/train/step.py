"""One optimizer step: gather, augment, forward, loss, backward, clip, update."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from seedless.data.augment import crop_and_flip
from seedless.numerics.dropout import dropout_keys
from seedless.train.arithmetic import compute_in, make_split
from seedless.train.optimizer import apply_step
from seedless.train.precision import autocast_for
from seedless.train.prediction import to_model_input
from seedless.train.training_problem import TrainingProblem

Phase = Callable[[str], AbstractContextManager[None]]


class Step:
    """Runs the steps of a problem, and returns the losses of the samples it saw.

    ``phase`` is told what is going on ("forward", "backward", "optimizer"), for whoever records it.
    """

    def __init__(self, problem: TrainingProblem, phase: Phase = lambda _: nullcontext()) -> None:
        self.problem = problem
        self.phase = phase
        self.trained = [p for group in problem.optimizer.param_groups for p in group["params"]]
        self.split = make_split(problem.config, self.trained)

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Update the model on the training rows (B,); return their losses (B,), on the device."""
        return self.update(self.take(rows), rows, epoch)

    def take(self, rows: Tensor) -> Tensor | None:
        """Return the samples of rows (B,) where they wait on the host; None if on the device."""
        samples = self.problem.train.samples
        if samples.device == rows.device:
            return None
        return samples[rows.cpu()].pin_memory().to(rows.device, non_blocking=True)

    def update(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Make the step: all of it on the device, with nothing that waits for the device.

        The batch's gradient is that of the mean loss, accumulated over microbatches where the
        configuration has them.
        """
        self.drop_gradients()
        with compute_in(self.problem.config.execution.arithmetic):
            return self.descend(samples, rows, epoch)

    def descend(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Gather the batch's gradient and follow it; return the losses (B,)."""
        train = self.problem.config.train
        gather = self.gather if self.split is None else self.gather_alike
        losses = gather(samples, rows, epoch)
        with self.phase("optimizer"):
            if train.clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.trained, train.clip_norm)
            apply_step(self.problem.optimizer)
        return losses

    def gather(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Add up the gradient of the mean loss, part by part; return the losses (B,)."""
        seen = []
        size = self.problem.config.train.microbatch or len(rows)
        for place, part in enumerate(torch.split(rows, size)):
            held = None if samples is None else samples[place * size :][: len(part)]
            losses = self.forward(held, part, epoch)
            with self.phase("backward"):
                torch.autograd.backward(losses.sum() / len(rows))
            seen.append(losses.detach())
        return torch.cat(seen)

    def gather_alike(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Do the same so that the parts do not show: portable arithmetic can."""
        assert self.split is not None
        seen: list[Tensor] = []

        def forward(part: Tensor, held: Tensor | None = None) -> Tensor:
            return self.forward(held, part, epoch)

        def average(losses: Tensor, *_: Tensor) -> Tensor:
            seen.append(losses.detach())
            return losses.sum() / len(losses)

        batch = (rows,) if samples is None else (rows, samples)
        with self.phase("backward"):
            self.split.step(forward, average, *batch)
        return seen[-1]

    def drop_gradients(self) -> None:
        """Forget the gradients of the step before."""
        for parameter in self.trained:
            parameter.grad = None

    def forward(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Return the losses of training rows (B,), with the epoch's augmentation and dropout."""
        problem, augment = self.problem, self.problem.config.augment
        split, precision = problem.train, problem.config.execution.precision
        with self.phase("forward"):
            if samples is None:
                samples = to_model_input(split.samples[rows], rows.device)
            keys, labels = problem.keys[rows], split.labels[rows]
            if augment.padding or augment.flip:
                samples = crop_and_flip(
                    samples, samples=keys, epoch=epoch, padding=augment.padding, flip=augment.flip
                )
            with dropout_keys(samples=keys, epoch=epoch), autocast_for(precision, rows.device):
                return self.evaluate(samples, labels)

    def evaluate(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the losses (B,) of samples as the model receives them."""
        return self.problem.loss(self.problem.model, samples, labels)
