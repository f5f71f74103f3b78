"""One short training of a network on images, without a random number generator."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.starts.images import MIN_POSITIVES, Images
from seedless.evaluate.auc import area_under_curve
from seedless.numerics.counter_random import draw_uniform

BATCH = 64
RATE = 1e-3
WARMUP_STEPS = 40


@dataclass(frozen=True)
class Score:
    """What a training ended with.

    Attributes:
        gradient: norm of the gradient at the start, on the first batch.
        auc: mean AUC of the classes with enough positives in the test images, after the last step.
        loss: mean training loss of the last epoch.
    """

    gradient: float
    auc: float
    loss: float

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON; a number that is not finite becomes None."""
        return {k: v if math.isfinite(v) else None for k, v in asdict(self).items()}


def train(model: nn.Module, images: Images, replicate: int, epochs: int, device: str) -> Score:
    """Train with AdamW, warm-up and cosine decay, and score the test images after the last step.

    ``replicate`` chooses the batch orders: a permutation of the counter for each epoch.
    """
    model = model.to(device).train()
    x, y = (part.to(device) for part in images.train)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    starts = range(0, len(x) - BATCH // 2, BATCH)  # a rest of less than half a batch is left out
    steps = epochs * len(starts)
    step, gradient = 0, math.nan
    loss_sum = torch.zeros((), device=device)
    for epoch in range(epochs):
        order = torch.from_numpy(_permute(len(x), replicate, epoch)).to(device)
        loss_sum.zero_()
        for start in starts:
            rows = order[start : start + BATCH]
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            loss.backward()
            if step == 0:
                gradient = measure_gradient(model)
            for group in optimizer.param_groups:
                group["lr"] = RATE * find_factor(step, steps)
            optimizer.step()
            loss_sum += loss.detach()
            step += 1
    return Score(gradient, score(model, images, device), float(loss_sum) / len(starts))


def find_factor(step: int, steps: int) -> float:
    """Return the factor on the learning rate: a linear warm-up, then half a cosine to 0."""
    if step < WARMUP_STEPS:
        return (step + 1) / WARMUP_STEPS
    done = (step - WARMUP_STEPS) / max(1, steps - WARMUP_STEPS)
    return 0.5 * (1 + math.cos(math.pi * done))


def measure_gradient(model: nn.Module) -> float:
    """Return the norm of the gradient of all parameters."""
    grads = [p.grad.double().square().sum() for p in model.parameters() if p.grad is not None]
    return math.sqrt(float(sum(grads)))


@torch.no_grad()
def score(model: nn.Module, images: Images, device: str) -> float:
    """Return the mean AUC of the classes with enough positives, of the test images."""
    model.eval()
    x, y = images.test
    outputs = torch.cat([model(part.to(device)).double().cpu() for part in x.split(4 * BATCH)])
    if not bool(torch.isfinite(outputs).all()):
        return 0.5  # a training that ended without numbers has learned nothing
    return mean_area(outputs.numpy(), y)


def mean_area(outputs: NDArray[np.float64], labels: Tensor) -> float:
    """Return the mean AUC of the columns that have enough positives."""
    truth = labels.numpy().astype(np.uint8)
    chosen = [k for k in range(truth.shape[1]) if truth[:, k].sum() >= MIN_POSITIVES]
    areas = [area_under_curve(outputs[:, k], truth[:, k]) for k in chosen]
    known = [area for area in areas if area is not None]
    return math.fsum(known) / len(known)


def _permute(count: int, replicate: int, epoch: int) -> NDArray[np.int64]:
    uniform = draw_uniform(replicate, f"benchmarks.starts epoch {epoch}", count)
    return np.argsort(uniform, kind="stable")
