"""One training step of a group of processes: each computes its part of the batch.

Every process ends the step with the gradients and losses of the whole batch, to the bit those of a
single process, so clipping and the optimizer need no exchange.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from seedless.core.errors import DataError
from seedless.numerics.active_keys import dropout_keys
from seedless.portable.batch.group_step import GroupStep
from seedless.train.process_group import exchange_values, fail_together
from seedless.train.shards import take_own
from seedless.train.step import Phase, Step, no_phase
from seedless.train.training_problem import StreamedSplit, TrainingProblem
from seedless.train.user_loss import UserLoss, call_model, check_loss, spread_loss


@dataclass(frozen=True, eq=False)
class Structure:
    """Nested dicts, lists and tuples whose tensors can be replaced.

    Attributes:
        leaves: what is in them, in order.
        form: how they are nested.
    """

    leaves: tuple[Any, ...]
    form: TreeSpec

    @classmethod
    def read(cls, value: Any) -> "Structure":
        """Return the structure of a value."""
        leaves, form = tree_flatten(value)
        return cls(tuple(leaves), form)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors in it."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    @property
    def widths(self) -> list[int]:
        """The sizes of its tensors on all axes but the first, that of the samples."""
        return [size for tensor in self.tensors for size in tensor.shape[1:]] or [0]

    def fill(self, tensors: Sequence[Tensor]) -> Any:
        """Return the same structure with other tensors."""
        following = iter(tensors)
        leaves = [next(following) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        return tree_unflatten(leaves, self.form)


class SharedStep(Step):
    """Trains a problem's model on one batch at a time, together with the other processes."""

    def __init__(self, problem: TrainingProblem, phase: Phase = no_phase) -> None:
        super().__init__(problem, phase)
        assert problem.group is not None
        self.group = problem.group
        self.exchange = GroupStep(self.trained, self.group.sums)
        self.is_first = True

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Train on the rows (B,) of the whole batch; return the losses (B,) of all of them."""
        if self.is_first and isinstance(self.problem.train, StreamedSplit):
            self.check_reading(self.problem.train, rows, epoch)
        self.is_first = False
        return self.update(None, rows, epoch)

    def make_batch_key(self, rows: Tensor) -> Tensor:
        """Return the key of the draws that all samples of the whole batch share."""
        return self.problem.keys[rows].sum()

    def add_gradients(self, samples: Tensor | None, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Set the gradients of the whole batch's mean loss; return the losses (B,)."""
        if len(rows) == 1:  # nothing to share
            return super().add_gradients(self.copy_from_host(rows), rows, epoch)
        own = take_own(rows, self.group.rank, self.group.size)
        with self.phase("backward"):
            if isinstance(self.problem.train, StreamedSplit):
                return self.compute_streamed(self.problem.train, own, rows, epoch)
            return self.compute_resident(own, rows, epoch)

    def compute_resident(self, own: Tensor, rows: Tensor, epoch: Tensor | int) -> Tensor:
        """Compute samples in memory. Their losses are the outputs that are exchanged."""
        found: list[Tensor] = []
        batch_key = self.make_batch_key(rows)

        def forward(part: Tensor, inputs: Tensor | None = None) -> Tensor:
            return self.forward(inputs, part, epoch, batch_key)

        def average(losses: Tensor, *_: Tensor) -> Tensor:
            found.append(losses.detach())
            return losses.sum() / len(losses)

        samples = self.copy_from_host(own)
        self.exchange.step(forward, average, own, *([] if samples is None else [samples]))
        return found[-1]

    def compute_streamed(
        self, split: StreamedSplit, own: Tensor, rows: Tensor, epoch: Tensor | int
    ) -> Tensor:
        """Compute samples that are read now, with the user's loss of all outputs and targets."""
        assert isinstance(self.problem.loss, UserLoss)
        function, batch_key = self.problem.loss.function, self.make_batch_key(rows)
        made: list[Structure] = []
        found: list[Tensor] = []
        # [Step 1] Read the samples of this process.
        batch = self.read_own(split, rows, epoch)
        tensors = [tensor[: len(own)] for tensor in batch.tensors]
        shapes = own.new_tensor([batch.widths]).expand(len(own), -1)

        # [Step 2] The outputs of this process's samples; dropout is keyed by sample.
        def forward(keys: Tensor, _: Tensor, *parts: Tensor) -> list[Tensor]:
            inputs, _targets = batch.fill(parts)
            with dropout_keys(samples=keys, epoch=epoch, step=batch_key):
                outputs = Structure.read(call_model(self.problem.model, inputs))
            made.append(outputs)
            return outputs.tensors

        # [Step 3] The loss of all outputs, which every process computes.
        def compute_loss(
            outputs: Tensor | list[Tensor], _: Tensor, shapes: Tensor, *parts: Tensor
        ) -> Tensor:
            check_widths(shapes, split.reader.split)
            whole = made[-1].fill([outputs] if isinstance(outputs, Tensor) else outputs)
            _inputs, targets = batch.fill(parts)
            loss = check_loss(function(whole, targets))
            found.append(loss.detach())
            return loss.sum() / len(loss) if loss.ndim else loss

        self.exchange.step(forward, compute_loss, self.problem.keys[own], shapes, *tensors)
        return spread_loss(found[-1], len(rows))

    def read_own(self, split: StreamedSplit, rows: Tensor, epoch: Tensor | int) -> Structure:
        """Return the samples that this process takes of the rows (B,) of a batch.

        One that takes none needs their form all the same, and gets two.
        """
        own = take_own(rows, self.group.rank, self.group.size)
        wanted = own if len(own) else rows[:2]
        batch = Structure.read(split.read(wanted, epoch))
        check_rows(batch, len(wanted), split.reader.split)
        return batch

    def check_reading(self, split: StreamedSplit, rows: Tensor, epoch: int) -> None:
        """Refuse, at the first step, a collate function by whose work parts of a batch differ."""
        name = split.reader.split
        # [Step 1] Padding: the parts have different widths. Later steps find this with the loss.
        with fail_together(self.group):
            widths = self.read_own(split, rows, epoch).widths
        check_widths(torch.tensor(exchange_values(self.group.messages, widths)), name)
        if len(rows) < 4:
            return
        # [Step 2] Mixing: four samples together, and two by two, differ.
        whole, *halves = (
            Structure.read(split.read(part, epoch)).tensors
            for part in (rows[:4], rows[:2], rows[2:4])
        )
        for four, *pairs in zip(whole, *halves, strict=True):
            shapes = {tuple(tensor.shape[1:]) for tensor in (four, *pairs)}
            # Padding may differ between these, and still be equal in all parts.
            if len(shapes) == 1 and not same_bytes(four, torch.cat(pairs)):
                raise DataError(
                    f"{name}: expected samples that do not depend on the others in "
                    "their batch, got other values for two samples than for the same two among "
                    "four. Several processes read parts of a batch: do not mix samples in collate"
                )


def same_bytes(one: Tensor, two: Tensor) -> bool:
    """Whether two tensors have the same bytes, so that NaN equals NaN."""
    return one.cpu().numpy().tobytes() == two.cpu().numpy().tobytes()


def check_widths(shapes: Tensor, split: str) -> None:
    """Refuse a batch whose parts were padded to different lengths.

    ``shapes`` (B, k): of each sample the sizes of its inputs and targets, without the first axis.
    """
    if bool((shapes != shapes[:1]).any()):
        raise DataError(
            f"{split}: expected inputs and targets of one shape in all processes, got several: a "
            "batch that is padded to its longest sample has another length in every part. Let "
            "collate pad all samples to one length"
        )


def check_rows(batch: Structure, samples: int, split: str) -> None:
    """Refuse a batch that cannot be put together from the parts of several processes."""
    for leaf in batch.leaves:
        if leaf is None or isinstance(leaf, bool):
            continue
        if not isinstance(leaf, Tensor) or not leaf.ndim or len(leaf) != samples:
            found = type(leaf).__name__
            if isinstance(leaf, Tensor):
                found = f"a tensor of shape {tuple(leaf.shape)}"
            raise DataError(
                f"{split}: on several processes every input and target must be a tensor with a row "
                f"for each of the {samples} samples, got {found}; let collate return such tensors"
            )
