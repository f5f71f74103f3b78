"""Connectionist temporal classification (Graves et al., 2006), in float64 and rounded once.

Law: with blanks between the labels of a target, l[0 .. 2 L], and y[t] the log-probabilities,
    alpha[t, s] = y[t, l[s]] + log(exp alpha[t-1, s] + exp alpha[t-1, s-1] + exp alpha[t-1, s-2]),
the last addend only where l[s] is no blank and not l[s-2]. The loss is -log(exp alpha[T, 2 L] +
exp alpha[T, 2 L - 1]). beta is the same from the end. The gradient, as torch defines it for inputs
from log_softmax, is exp y[t, c] - the probability that c is read at t. Sums of three have a fixed
order; those over the positions of a class are added from the first position to the last.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.exact import elementary as e
from seedless.portable.ops.elementwise import Implementation

Lengths = Sequence[int] | Tensor


def _list_lengths(lengths: Lengths) -> list[int]:
    return [int(one) for one in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def _insert_blanks(targets: Tensor, lengths: Sequence[int], blank: int) -> Tensor:
    """Return (samples, 2 L + 1) labels with blanks between them, L the length of the longest."""
    longest = max(lengths, default=0)
    rows = torch.full((len(lengths), 2 * longest + 1), blank, dtype=torch.int64)
    flat, start = targets.detach().to("cpu", torch.int64), 0
    for n, length in enumerate(lengths):
        row = flat[start : start + length] if flat.ndim == 1 else flat[n, :length]
        rows[n, 1 : 2 * length + 1 : 2] = row
        start += length
    return rows.to(targets.device)


def _add_exponentials(*terms: Tensor) -> Tensor:
    """Return log(exp a + exp b + ...), added in this order; -infinity where all are."""
    largest = terms[0]
    for term in terms[1:]:
        largest = torch.where(term > largest, term, largest)
    is_empty = largest == -math.inf
    centre = torch.where(is_empty, torch.zeros_like(largest), largest)
    total = e.exp(terms[0] - centre)
    for term in terms[1:]:
        total = total + e.exp(term - centre)
    return torch.where(is_empty, -math.inf, e.log(total) + centre)


def _shift(x: Tensor, by: int) -> Tensor:
    """Return x (samples, positions) moved by positions, with -infinity where nothing came from."""
    moved = torch.full_like(x, -math.inf)
    if by > 0:
        moved[:, by:] = x[:, : max(x.shape[1] - by, 0)]
    else:
        moved[:, :by] = x[:, -by:]
    return moved


class _Lattice:
    """The positions of a batch: labels, log-probabilities at them, and where two may be skipped."""

    def __init__(
        self, log_probs: Tensor, targets: Tensor, inputs: Lengths, lengths: Lengths, blank: int
    ) -> None:
        self.inputs, self.lengths = _list_lengths(inputs), _list_lengths(lengths)
        self.labels = _insert_blanks(targets, self.lengths, blank)
        positions = self.labels.shape[1]
        index = self.labels[None].expand(len(log_probs), -1, -1)
        self.scores = log_probs.to(torch.float64).gather(2, index)  # (time, samples, positions)
        two_before = torch.cat([self.labels[:, :2], self.labels[:, :-2]], 1)[:, :positions]
        self.may_skip = (self.labels != blank) & (self.labels != two_before)
        column = torch.arange(positions, device=log_probs.device)
        ends = torch.tensor(self.lengths, device=log_probs.device)[:, None] * 2
        self.is_end = (column == ends) | (column == ends - 1)
        self.is_start = (column < 2).expand(self.is_end.shape)
        self.exists = column <= ends
        self.last = torch.tensor(self.inputs, device=log_probs.device)[:, None] - 1

    def walk_forward(self) -> Tensor:
        """Return alpha, (time, samples, positions)."""
        nothing = torch.full_like(self.scores[0], -math.inf)
        rows = [torch.where(self.is_start & self.exists, self.scores[0], nothing)]
        for scores in self.scores[1:]:
            before = rows[-1]
            skipped = torch.where(self.may_skip, _shift(before, 2), nothing)
            total = _add_exponentials(before, _shift(before, 1), skipped) + scores
            rows.append(torch.where(self.exists, total, nothing))
        return torch.stack(rows)

    def walk_backward(self) -> Tensor:
        """Return beta, (time, samples, positions): -infinity after the end of a sample's input."""
        nothing = torch.full_like(self.scores[0], -math.inf)
        skip_to = torch.zeros_like(self.may_skip)
        skip_to[:, :-2] = self.may_skip[:, 2:]
        after, rows = nothing, []
        for t in reversed(range(len(self.scores))):
            skipped = torch.where(skip_to, _shift(after, -2), nothing)
            total = _add_exponentials(after, _shift(after, -1), skipped) + self.scores[t]
            total = torch.where(
                self.last == t, torch.where(self.is_end, self.scores[t], nothing), total
            )
            after = torch.where(self.exists & (self.last >= t), total, nothing)
            rows.append(after)
        return torch.stack(rows[::-1])

    def compute_loss(self, alpha: Tensor) -> Tensor:
        """Return the loss of each sample; an input without steps can only be an empty target."""
        samples = torch.arange(len(self.inputs), device=alpha.device)
        final = alpha[self.last[:, 0].clamp(min=0), samples]
        nothing = torch.full_like(final, -math.inf)
        ends = torch.where(self.is_end, final, nothing)
        best = ends.gather(1, torch.tensor(self.lengths, device=alpha.device)[:, None] * 2)
        before = torch.where(self.is_end, ends, nothing).clone()
        before.scatter_(1, torch.tensor(self.lengths, device=alpha.device)[:, None] * 2, -math.inf)
        return -_add_exponentials(best[:, 0], before.amax(1))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the loss of each sample and alpha (samples, time, positions).

    ``log_probs`` is (time, samples, classes); ``targets`` (samples, labels) or all labels in a row.
    """
    lattice = _Lattice(log_probs, targets, input_lengths, target_lengths, blank)
    alpha = lattice.walk_forward()
    loss = lattice.compute_loss(alpha)
    if zero_infinity:
        loss = torch.where(loss == math.inf, torch.zeros_like(loss), loss)
    return loss.to(log_probs.dtype), alpha.transpose(0, 1).to(log_probs.dtype)


def ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    """Return the gradient of ``log_probs``; alpha and the loss are computed again in float64."""
    # [Step 1] The probability of each position at each time, given the target.
    lattice = _Lattice(log_probs, targets, input_lengths, target_lengths, blank)
    alpha, beta = lattice.walk_forward(), lattice.walk_backward()
    loss = lattice.compute_loss(alpha)
    joint = alpha + beta - lattice.scores
    is_reached = joint != -math.inf
    posterior = torch.where(is_reached, e.exp(joint + loss[:, None]), torch.zeros_like(joint))
    # [Step 2] Add the positions of each class, from the first to the last.
    wide = log_probs.to(torch.float64)
    read = torch.zeros_like(wide)
    for position in range(lattice.labels.shape[1]):
        index = lattice.labels[:, position].view(1, -1, 1).expand(len(wide), -1, 1)
        read.scatter_(2, index, read.gather(2, index) + posterior[:, :, position : position + 1])
    # [Step 3] The gradient, zero after the end of an input and, if asked, where no path exists.
    time = torch.arange(len(wide), device=wide.device)[:, None]
    out = (e.exp(wide) - read) * grad.to(torch.float64)[:, None]
    out = torch.where((time > lattice.last[:, 0])[:, :, None], torch.zeros_like(out), out)
    is_impossible = (loss == math.inf)[None, :, None]
    value = 0.0 if zero_infinity else math.nan
    inside = (time <= lattice.last[:, 0])[:, :, None]
    return torch.where(is_impossible & inside, value, out).to(log_probs.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_ctc_loss": ctc_loss,
    "aten::_ctc_loss.Tensor": ctc_loss,
    "aten::_ctc_loss_backward": ctc_loss_backward,
    "aten::_ctc_loss_backward.Tensor": ctc_loss_backward,
}
