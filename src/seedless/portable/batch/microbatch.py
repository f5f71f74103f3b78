"""A batch computed in parts that gives the bits of the whole batch: gradients and loss.

    with portable():
        loss = Split(model.parameters(), 32).step(model, loss_of, x, y)
        optimizer.step()

Law: everything a network computes for a sample depends on that sample alone, except sums over
samples: the gradients of weights, biases, norms and embeddings. Those need the grids of the whole
batch. So the parts go
  1. forward, to find the outputs, from which the loss and its gradient are computed as a whole;
  2. forward and backward, to find the largest exponent of each grid;
  3. forward and backward, to add the integers on these grids, without rounding.
The sums that the last part ends with are those of the whole batch.

It takes the memory of one part, and two float64 numbers for each element of each such sum; and the
time of about 3 forward and 2 backward passes of the whole batch.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.portable.batch.batch_dependence import TRACED_SIZES, PlannedSum, plan_sums
from seedless.portable.batch.op_trace import record
from seedless.portable.context import CONTEXT
from seedless.portable.exact.sums import ExactSum, Parts, add_parts
from seedless.portable.mode import is_active

Forward = Callable[..., Tensor | Sequence[Tensor]]
Loss = Callable[..., Tensor]
Grads = tuple[Tensor | None, ...]
_TRIAL_SAMPLES = 4  # of the trial of a new step: as a whole, and as two parts


class Split:
    """Steps of a model over batches in parts.

    Args:
        parameters: those whose gradients are wanted.
        size: samples in a part, the last part taking what is left; or the sizes of all parts.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], size: int | Sequence[int]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.size = size
        self._plans: dict[Any, list[PlannedSum]] = {}

    def step(self, forward: Forward, loss_of: Loss, *batch: Tensor) -> Tensor:
        """Add the whole batch's gradients to ``.grad`` and return its loss.

        Args:
            forward: takes the rows of ``batch`` that make a part, in order, and returns their
                outputs, one row a sample: a tensor or several. Dropout must be computed inside,
                from keys that are in the batch (`seedless.dropout_keys`).
            loss_of: takes the outputs of the whole batch, and then ``batch`` itself, and returns
                the loss. It may use all samples at once, but no parameters.
            batch: tensors with one row a sample.
        """
        _check_batch(batch)
        sizes = _list_sizes(self.size, batch[0].shape[0])
        if len(sizes) == 1:
            loss, grads = self._compute_whole(forward, loss_of, batch)
        else:
            planned = self._find_plan(forward, loss_of, batch)
            loss, grads = self._compute_parts(forward, loss_of, batch, sizes, planned)
        for parameter, grad in zip(self.parameters, grads, strict=True):
            if grad is not None:
                parameter.grad = grad if parameter.grad is None else parameter.grad + grad
        return loss

    def _compute_whole(
        self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor]
    ) -> tuple[Tensor, Grads]:
        """Return loss and gradients of an ordinary step."""
        outputs = _list(forward(*batch))
        loss, output_grads = self._differentiate_loss(loss_of, outputs, batch)
        return loss, self._backward(outputs, output_grads)

    def _differentiate_loss(
        self, loss_of: Loss, outputs: Sequence[Tensor], batch: Sequence[Tensor]
    ) -> tuple[Tensor, Grads]:
        """Return the loss and its gradients with respect to the outputs."""
        with torch.enable_grad():
            leaves = [output.detach().requires_grad_() for output in outputs]
            loss = loss_of(leaves[0] if len(leaves) == 1 else leaves, *batch)
        wanted = [*leaves, *self.parameters]
        grads = torch.autograd.grad(loss, wanted, allow_unused=True)
        if any(grad is not None for grad in grads[len(leaves) :]):
            raise NumericsError(
                "expected a loss of the outputs alone, got one that uses a parameter of the model; "
                "use the optimizer's weight decay, or return the term from forward as an output"
            )
        return loss.detach(), grads[: len(leaves)]

    def _backward(self, outputs: Sequence[Tensor], output_grads: Sequence[Tensor | None]) -> Grads:
        """Return the parameters' gradients, given those of the outputs."""
        used = [(y, g) for y, g in zip(outputs, output_grads, strict=True) if g is not None]
        return torch.autograd.grad(
            [y for y, _ in used], self.parameters, [g for _, g in used], allow_unused=True
        )

    def _compute_parts(
        self,
        forward: Forward,
        loss_of: Loss,
        batch: Sequence[Tensor],
        sizes: Sequence[int],
        planned: Sequence[PlannedSum],
    ) -> tuple[Tensor, Grads]:
        """Return the same loss and gradients, computed part by part."""
        rows = [torch.split(tensor, list(sizes)) for tensor in batch]
        parts = list(zip(*rows, strict=True))
        # [Step 1] Find the outputs of all parts, and from them the loss and its gradient.
        with torch.no_grad():
            pieces = [_list(forward(*part)) for part in parts]
        _check_outputs(pieces, sizes)
        outputs = [torch.cat(each) for each in zip(*pieces, strict=True)]
        loss, output_grads = self._differentiate_loss(loss_of, outputs, batch)
        by_part = [
            [None] * len(parts) if grad is None else torch.split(grad, list(sizes))
            for grad in output_grads
        ]
        # [Step 2] Find the exponents of the whole batch's grids, then [Step 3] add the integers.
        evaluator = _PartSums(planned, sum(sizes))
        grads: Grads = ()
        for evaluator.is_adding in (False, True):
            for number, part in enumerate(parts):
                evaluator.begin(is_last=number == len(parts) - 1)
                with CONTEXT.evaluate_sums_with(evaluator):
                    grads = self._backward(_list(forward(*part)), [one[number] for one in by_part])
                evaluator.end()
        return loss, grads

    def _find_plan(
        self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor]
    ) -> list[PlannedSum]:
        """Return the sums of a step on such samples; a new kind of step is traced and tried."""
        key = tuple((tensor.shape[1:], tensor.dtype, tensor.device) for tensor in batch)
        if key not in self._plans:
            if batch[0].is_cuda and torch.cuda.is_current_stream_capturing():
                raise NumericsError(
                    "expected a step of these shapes before the graph is captured: the first one "
                    "is traced. Run it once, then capture"
                )
            planned = self._trace(forward, batch)
            self._try(forward, loss_of, _take(batch, _TRIAL_SAMPLES), planned)
            self._plans[key] = planned
        return self._plans[key]

    def _trace(self, forward: Forward, batch: Sequence[Tensor]) -> list[PlannedSum]:
        """Trace the step with two and with three samples, and compare."""

        def run(rows: Sequence[Tensor]) -> None:
            outputs = _list(forward(*rows))
            self._backward(outputs, [torch.ones_like(output) for output in outputs])

        few, more = (_take(batch, size) for size in TRACED_SIZES)
        run(few)  # makes the tables that are made once, so that they are not in the trace
        two, three = record(lambda: run(few)), record(lambda: run(more))
        return plan_sums(two, three)

    def _try(
        self,
        forward: Forward,
        loss_of: Loss,
        batch: Sequence[Tensor],
        planned: Sequence[PlannedSum],
    ) -> None:
        """Refuse a step whose gradients differ between four samples and two times two."""
        _, whole = self._compute_whole(forward, loss_of, batch)
        _, parts = self._compute_parts(forward, loss_of, batch, [2, 2], planned)
        for number, (one, two) in enumerate(zip(whole, parts, strict=True)):
            if not _same(one, two):
                raise NumericsError(
                    "expected each sample to be computed alone, so that a batch can be computed in "
                    f"parts; four samples and two times two differ in the gradient of parameter "
                    f"{number}, {tuple(self.parameters[number].shape)}. Does the model reorder or "
                    "mix samples, or keep state? Compute the batch as a whole"
                )


class _PartSums:
    """Evaluates the sums of each part: first their exponents, then their integers."""

    def __init__(self, planned: Sequence[PlannedSum], samples: int) -> None:
        self.planned, self.samples = planned, samples
        self.is_adding = self.is_last = False
        self.number = 0
        self.exponents: dict[int, list[Tensor]] = {}
        self.sums: dict[int, Parts] = {}

    def begin(self, is_last: bool) -> None:
        """Start with the first sum of a part."""
        self.number, self.is_last = 0, is_last

    def end(self) -> None:
        """Check that the part had every sum."""
        if self.number != len(self.planned):
            raise _differs(f"{self.number} sums", f"{len(self.planned)}")

    def evaluate_sum(self, exact_sum: ExactSum) -> Tensor:
        """Return a sum that this part computes alone; of one over samples, zeros.

        With the last part, a sum over samples is that of the whole batch.
        """
        number, self.number = self.number, self.number + 1
        if number >= len(self.planned) or self.planned[number].name != exact_sum.name:
            raise _differs(f"a {exact_sum.name} as sum number {number}", "another")
        known = self.planned[number]
        if not known.adds_samples:
            return exact_sum.compute()
        if tuple(exact_sum.shape) != known.shape:
            raise _differs(f"a {exact_sum.name} of shape {exact_sum.shape}", f"{known.shape}")
        if not self.is_adding:
            exponents, before = exact_sum.find_exponents(), self.exponents.get(number, [])
            self.exponents[number] = list(map(torch.maximum, before, exponents)) or exponents
            return exact_sum.make_zeros()
        parts = exact_sum.add_integers(self.exponents[number])
        if number in self.sums:
            # One float64 number holds a sum of few addends: half the memory.
            fits_in_one = known.count_addends(self.samples) <= exact_sum.max_addends
            earlier = self.sums.pop(number)
            parts = (earlier[0].add_(parts[0]), None) if fits_in_one else add_parts(earlier, parts)
        if self.is_last:
            return exact_sum.scale(parts, self.exponents.pop(number))
        self.sums[number] = parts
        return exact_sum.make_zeros()


def _differs(found: str, expected: str) -> NumericsError:
    return NumericsError(
        f"expected every part to compute the sums of the first step, got {found} where there was "
        f"{expected}. Parts of one sample may leave sums out: use larger ones; make a new "
        "Split where the model has changed"
    )


def _check_batch(batch: Sequence[Tensor]) -> None:
    if not is_active():
        raise NumericsError(
            "expected a batch in parts inside `with portable():`, where each sum has one "
            "value; got it outside. Move step() inside"
        )
    lengths = {tensor.shape[0] if tensor.ndim else 0 for tensor in batch}
    if len(lengths) != 1 or 0 in lengths:
        raise NumericsError(
            "expected tensors with one row a sample, and at least one sample; got shapes "
            f"{[tuple(tensor.shape) for tensor in batch]}"
        )


def _list_sizes(size: int | Sequence[int], samples: int) -> list[int]:
    """Return the sizes of the parts."""
    if isinstance(size, int):
        if size < 1:
            raise NumericsError(f"expected parts of at least one sample, got size={size}")
        whole, rest = divmod(samples, size)
        if rest == 1 and whole and size > 2:  # a part of one sample may leave sums out
            return [size] * (whole - 1) + [size - 1, 2]
        return [size] * whole + ([rest] if rest else [])
    if sum(size) != samples or any(part < 1 for part in size):
        raise NumericsError(
            f"expected sizes of parts that add up to the batch's {samples} samples, got {size}"
        )
    return list(size)


def _take(batch: Sequence[Tensor], samples: int) -> list[Tensor]:
    """Return the first rows, repeated where there are too few."""
    return [
        tensor[torch.arange(samples, device=tensor.device) % tensor.shape[0]] for tensor in batch
    ]


def _list(outputs: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [outputs] if isinstance(outputs, Tensor) else list(outputs)


def _check_outputs(pieces: Iterable[Sequence[Tensor]], sizes: Sequence[int]) -> None:
    for outputs, size in zip(pieces, sizes, strict=True):
        for output in outputs:
            if not output.ndim or output.shape[0] != size:
                raise NumericsError(
                    f"expected outputs with one row for each of a part's {size} samples, got "
                    f"{tuple(output.shape)}; compute what concerns the batch in loss_of"
                )


def _same(one: Tensor | None, two: Tensor | None) -> bool:
    """Return whether two gradients have the same bits, not counting those of NaNs."""
    if one is None or two is None:
        return one is two
    bits = [torch.where(x != x, 1.0, x).view(torch.int32) for x in (one, two)]
    return torch.equal(*bits) and torch.equal(one != one, two != two)
