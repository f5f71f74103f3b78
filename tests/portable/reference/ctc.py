"""References of connectionist temporal classification: one position at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import Array, Reference, narrow, widen

Table = list[list[float]]


def _add(*terms: float) -> float:
    """log(exp a + exp b + ...)."""
    largest = max(terms)
    if largest == -math.inf:
        return -math.inf
    total = ref.exp(terms[0] - largest)
    for term in terms[1:]:
        total += ref.exp(term - largest)
    return ref.log(total) + largest


def _walk(scores: Table, labels: list[int], blank: int) -> Table:
    """Alpha of one sample; beta is that of the reversed sample, reversed."""
    positions = range(len(labels))
    rows = [[scores[0][s] if s < 2 else -math.inf for s in positions]]
    for row in scores[1:]:
        before = rows[-1]
        now = []
        for s in positions:
            one = before[s - 1] if s > 0 else -math.inf
            skips = s > 1 and labels[s] != blank and labels[s] != labels[s - 2]
            now.append(_add(before[s], one, before[s - 2] if skips else -math.inf) + row[s])
        rows.append(now)
    return rows


def _samples(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int) -> Any:
    """Yield number, labels, scores, alpha and loss of each sample."""
    start = 0
    for n, (steps, length) in enumerate(zip(map(int, inputs), map(int, lengths), strict=True)):
        row = targets[start : start + length] if targets.ndim == 1 else targets[n, :length]
        start += length
        labels = [blank, *(label for one in row.tolist() for label in (one, blank))]
        scores = [[float(log_probs[t, n, label]) for label in labels] for t in range(steps)]
        alpha = _walk(scores, labels, blank)
        last = [alpha[-1][2 * length], alpha[-1][2 * length - 1] if length else -math.inf]
        yield n, labels, scores, alpha, -_add(*last)


def ctc_loss(
    log_probs: Any,
    targets: Any,
    inputs: Any,
    lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Array]:
    """The loss of each sample."""
    samples = _samples(widen(log_probs), targets, inputs, lengths, blank)
    losses = [loss for *_, loss in samples]
    return (narrow([0.0 if zero_infinity and one == math.inf else one for one in losses]),)


def ctc_backward(
    grad: Any, log_probs: Any, targets: Any, inputs: Any, lengths: Any, *options: Any
) -> Array:
    """Its gradient: exp y less the probability that a class is read."""
    blank = options[2]
    wide = widen(log_probs)
    out = np.zeros(wide.shape)
    for n, labels, scores, alpha, loss in _samples(wide, targets, inputs, lengths, blank):
        turned = _walk([row[::-1] for row in scores[::-1]], labels[::-1], blank)
        beta = [row[::-1] for row in turned[::-1]]
        for t, row in enumerate(scores):
            read = [0.0] * wide.shape[2]
            for s, label in enumerate(labels):
                joint = alpha[t][s] + beta[t][s] - row[s]
                read[label] += ref.exp(joint + loss) if joint > -math.inf else 0.0
            for label in range(wide.shape[2]):
                value = ref.exp(float(wide[t, n, label])) - read[label]
                out[t, n, label] = value * float(grad[n])
    return narrow(out)


REFERENCES: dict[str, Reference] = {"_ctc_loss": ctc_loss, "_ctc_loss_backward": ctc_backward}
