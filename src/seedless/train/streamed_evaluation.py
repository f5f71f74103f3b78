"""Evaluate a model on a streamed split: its mean loss, the user's metrics, a digest of its outputs.

Outputs may be whole volumes, so they are not kept: each batch is scored, hashed and forgotten.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seedless.core.digests import digest_value
from seedless.core.errors import ConfigError, SeedlessError
from seedless.core.plain_values import digest_structure
from seedless.train.arithmetic import autocast_for, compute_in
from seedless.train.process_group import join_values, take_turns
from seedless.train.training_problem import StreamedSplit, TrainingProblem
from seedless.train.user_loss import UserLoss, call_model, check_loss, show, spread_loss

Metrics = Mapping[str, Callable[[Any, Any], Any]]


@dataclass(frozen=True)
class SplitScores:
    """The scores of a split.

    Attributes:
        loss: the mean of the samples' losses.
        metrics: of each metric the mean of its samples' values.
        outputs: "sha256:..." over the outputs of every batch; "" where it was not asked for.
    """

    loss: float
    metrics: Mapping[str, float]
    outputs: str = ""


@torch.no_grad()
def evaluate_split(
    problem: TrainingProblem,
    split: StreamedSplit,
    metrics: Metrics | None = None,
    *,
    with_digest: bool = False,
) -> SplitScores:
    """Return the scores of the model on a split, in evaluation mode, always in the same batches.

    The processes of a group take the batches in turns, and each returns all scores.

    Args:
        metrics: functions of outputs and targets that return a value for each sample, or one for
            the batch; they are averaged over the samples.
        with_digest: hash the outputs as well.
    """
    assert isinstance(problem.loss, UserLoss)
    model, config, size = problem.model, problem.config, problem.config.train.evaluate_batch
    batches = [split.canonical[start : start + size] for start in range(0, len(split), size)]
    batches = list(take_turns(batches, problem.group))
    scored: list[tuple[list[float], dict[str, list[float]], str]] = []  # of each batch
    was_training = model.training
    model.eval()
    split.expect(batches, 0)
    try:
        for rows in batches:
            inputs, targets = split.read(torch.from_numpy(np.ascontiguousarray(rows)), 0)
            precision = config.execution.precision
            with compute_in(config.execution.arithmetic), autocast_for(precision, split.device):
                outputs = call_model(model, inputs)
                loss = check_loss(problem.loss.function(outputs, targets))
            losses = spread_loss(loss, len(rows)).double().tolist()
            values = {
                name: compute_metric(name, metric, outputs, targets, len(rows))
                for name, metric in (metrics or {}).items()
            }
            scored.append((losses, values, digest_structure(outputs) if with_digest else ""))
    finally:
        model.train(was_training)
    losses_of_batches, values_of_batches, digests = zip(
        *join_values(scored, problem.group), strict=True
    )
    return SplitScores(
        loss=_average(losses_of_batches),
        metrics={
            name: _average([one[name] for one in values_of_batches]) for name in metrics or {}
        },
        outputs=digest_value(list(digests)) if with_digest else "",
    )


def _average(batches: Sequence[Sequence[float]]) -> float:
    """Return the mean over the samples of all batches."""
    values = [value for batch in batches for value in batch]
    return math.fsum(values) / len(values)


def compute_metric(
    name: str, metric: Callable[[Any, Any], Any], outputs: Any, targets: Any, samples: int
) -> list[float]:
    """Return a metric's value for each sample of a batch."""
    try:
        value = metric(outputs, targets)
    except (SeedlessError, torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:  # the function is not ours: whatever it raises is the message
        raise ConfigError(
            f"the metric {name!r} failed for {show(outputs)} and {show(targets)}: "
            f"{type(error).__name__}: {error}. It is called with outputs and targets of a batch"
        ) from error
    found = torch.as_tensor(value).double().cpu() if _is_numeric(value) else None
    if found is None or found.ndim > 1 or (found.ndim and len(found) != samples):
        shape = "" if found is None else f" of shape {tuple(found.shape)}"
        raise ConfigError(
            f"expected the metric {name!r} to return a number for the batch, or one for each of "
            f"its {samples} samples, got {type(value).__name__}{shape}"
        )
    return found.expand(samples).tolist()


def _is_numeric(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray | np.generic | int | float)
