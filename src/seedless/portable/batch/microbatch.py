"""A batch computed in parts that gives the bits of the whole batch: gradients and loss.

    with portable():
        loss = Split(model.parameters(), 32).step(model, loss_of, x, y)
        optimizer.step()

Law: what a sample meets on its way through the network depends on that sample alone, so only sums
over samples (gradients of weights, biases, norms and embeddings) know the batch. Those need the
batch's grids. The parts go forward once to find the outputs, from which the loss and its gradient
are computed whole; forward and backward once to find the largest exponent of each grid; and again
to add the integers on these grids, without rounding. The last part's sums are the batch's.

Memory is that of one part, and two float64 numbers for each element of each such sum; time about
3 forward and 2 backward passes of the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.portable.batch.batch_dependence import SIZES, Planned, plan
from seedless.portable.batch.op_trace import record
from seedless.portable.context import CONTEXT
from seedless.portable.exact.sums import Parts, Sum, add_parts
from seedless.portable.mode import is_active

Forward = Callable[..., Tensor | Sequence[Tensor]]
Loss = Callable[..., Tensor]
Grads = tuple[Tensor | None, ...]
_TRIAL = 4  # samples in the trial of a new step: whole, and as two parts


class Split:
    """Steps of a model over batches in parts.

    Args:
        parameters: those whose gradients are wanted.
        size: samples in a part, the last part taking what is left; or the sizes of all parts.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], size: int | Sequence[int]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.size = size
        self._plans: dict[Any, list[Planned]] = {}

    def step(self, forward: Forward, loss_of: Loss, *batch: Tensor) -> Tensor:
        """Add the whole batch's gradients to ``.grad`` and return its loss.

        Args:
            forward: takes the rows of ``batch`` that make a part, in order, and returns their
                outputs, one row a sample: a tensor or several. Dropout must be drawn inside, from
                keys that are in the batch (`seedless.dropout_keys`).
            loss_of: takes the outputs of the whole batch, and then ``batch`` itself, and returns
                the loss. It may look at all samples at once; parameters it must not touch.
            batch: tensors with one row a sample.
        """
        _check_batch(batch)
        sizes = _cut(self.size, batch[0].shape[0])
        if len(sizes) == 1:
            loss, grads = self._whole(forward, loss_of, batch)
        else:
            planned = self._find_plan(forward, loss_of, batch)
            loss, grads = self._parts(forward, loss_of, batch, sizes, planned)
        for parameter, grad in zip(self.parameters, grads, strict=True):
            if grad is not None:
                parameter.grad = grad if parameter.grad is None else parameter.grad + grad
        return loss

    def _whole(
        self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor]
    ) -> tuple[Tensor, Grads]:
        """Return loss and gradients as a plain step finds them."""
        outputs = _listed(forward(*batch))
        loss, slopes = self._slopes(loss_of, outputs, batch)
        return loss, self._backward(outputs, slopes)

    def _slopes(
        self, loss_of: Loss, outputs: Sequence[Tensor], batch: Sequence[Tensor]
    ) -> tuple[Tensor, Grads]:
        """Return the loss and its gradient by the outputs."""
        with torch.enable_grad():
            leaves = [output.detach().requires_grad_() for output in outputs]
            loss = loss_of(leaves[0] if len(leaves) == 1 else leaves, *batch)
        wanted = [*leaves, *self.parameters]
        slopes = torch.autograd.grad(loss, wanted, allow_unused=True)
        if any(slope is not None for slope in slopes[len(leaves) :]):
            raise NumericsError(
                "expected a loss of the outputs alone, got one that uses a parameter of the model; "
                "use the optimizer's weight decay, or return the term from forward as an output"
            )
        return loss.detach(), slopes[: len(leaves)]

    def _backward(self, outputs: Sequence[Tensor], slopes: Sequence[Tensor | None]) -> Grads:
        """Return the parameters' gradients, given those of the outputs."""
        used = [(y, g) for y, g in zip(outputs, slopes, strict=True) if g is not None]
        return torch.autograd.grad(
            [y for y, _ in used], self.parameters, [g for _, g in used], allow_unused=True
        )

    def _parts(
        self,
        forward: Forward,
        loss_of: Loss,
        batch: Sequence[Tensor],
        sizes: Sequence[int],
        planned: Sequence[Planned],
    ) -> tuple[Tensor, Grads]:
        """Return the same loss and gradients, computed part by part."""
        rows = [torch.split(tensor, list(sizes)) for tensor in batch]
        parts = list(zip(*rows, strict=True))
        with torch.no_grad():
            found = [_listed(forward(*part)) for part in parts]
        _check_outputs(found, sizes)
        outputs = [torch.cat(pieces) for pieces in zip(*found, strict=True)]
        loss, slopes = self._slopes(loss_of, outputs, batch)
        cut = [None if slope is None else torch.split(slope, list(sizes)) for slope in slopes]
        turns = _Turns(planned, sum(sizes))
        grads: Grads = ()
        for turns.adding in (False, True):
            for number, part in enumerate(parts):
                turns.begin(last=number == len(parts) - 1)
                here = [None if pieces is None else pieces[number] for pieces in cut]
                with CONTEXT.evaluate_sums_with(turns):
                    grads = self._backward(_listed(forward(*part)), here)
                turns.end()
        return loss, grads

    def _find_plan(self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor]) -> list[Planned]:
        """Return the sums of a step on such samples; a step seen first is traced and tried."""
        key = tuple((tensor.shape[1:], tensor.dtype, tensor.device) for tensor in batch)
        if key not in self._plans:
            if batch[0].is_cuda and torch.cuda.is_current_stream_capturing():
                raise NumericsError(
                    "expected a step of these shapes before the graph is captured: the first one "
                    "is traced. Run it once, then capture"
                )
            planned = self._trace(forward, batch)
            self._try(forward, loss_of, _take(batch, _TRIAL), planned)
            self._plans[key] = planned
        return self._plans[key]

    def _trace(self, forward: Forward, batch: Sequence[Tensor]) -> list[Planned]:
        """Trace the step with two and with three samples, and compare."""

        def run(rows: Sequence[Tensor]) -> None:
            outputs = _listed(forward(*rows))
            self._backward(outputs, [torch.ones_like(output) for output in outputs])

        few, more = (_take(batch, size) for size in SIZES)
        run(few)  # tables are made once: not in the trace
        two, three = record(lambda: run(few)), record(lambda: run(more))
        return plan(two, three)

    def _try(
        self,
        forward: Forward,
        loss_of: Loss,
        batch: Sequence[Tensor],
        planned: Sequence[Planned],
    ) -> None:
        """Refuse a step that four samples tell from two and two: samples were exchanged."""
        _, whole = self._whole(forward, loss_of, batch)
        _, parts = self._parts(forward, loss_of, batch, [2, 2], planned)
        for number, (one, two) in enumerate(zip(whole, parts, strict=True)):
            if not _same(one, two):
                raise NumericsError(
                    "expected each sample to be computed alone, so that a batch can be computed in "
                    f"parts; four samples and two times two differ in the gradient of parameter "
                    f"{number}, {tuple(self.parameters[number].shape)}. Does the model reorder or "
                    "mix samples, or keep state? Compute the batch whole"
                )


class _Turns:
    """Takes the sums of each part: first their exponents, then their integers."""

    def __init__(self, planned: Sequence[Planned], samples: int) -> None:
        self.planned, self.samples = planned, samples
        self.adding = self.last = False
        self.number = 0
        self.tops: dict[int, list[Tensor]] = {}
        self.sums: dict[int, Parts] = {}

    def begin(self, last: bool) -> None:
        """Start with the first sum of a part."""
        self.number, self.last = 0, last

    def end(self) -> None:
        """Check that the part had every sum."""
        if self.number != len(self.planned):
            raise _differs(f"{self.number} sums", f"{len(self.planned)}")

    def evaluate_sum(self, call: Sum) -> Tensor:
        """Evaluate a sum of this part alone; of one over samples give zeros, the last part all."""
        place, self.number = self.number, self.number + 1
        if place >= len(self.planned) or self.planned[place].name != call.name:
            raise _differs(f"a {call.name} as sum number {place}", "another")
        known = self.planned[place]
        if not known.shared:
            return call.compute()
        if tuple(call.shape) != known.shape:
            raise _differs(f"a {call.name} of shape {call.shape}", f"{known.shape}")
        if not self.adding:
            tops, before = call.tops(), self.tops.get(place)
            self.tops[place] = tops if before is None else list(map(torch.maximum, before, tops))
            return call.zeros()
        parts, earlier = call.parts(self.tops[place]), self.sums.pop(place, None)
        if earlier is not None:
            short = known.addends(self.samples) <= call.limit
            parts = _add_short(earlier, parts) if short else add_parts(earlier, parts)
        if self.last:
            return call.finish(parts, self.tops.pop(place))
        self.sums[place] = parts
        return call.zeros()


def _add_short(one: Parts, two: Parts) -> Parts:
    """Add sums of which one float64 number holds those of the whole batch: half the memory."""
    return one[0].add_(two[0]), None


def _differs(found: str, expected: str) -> NumericsError:
    return NumericsError(
        f"expected every part to take the sums found in the first step, got {found} where there "
        f"was {expected}. Parts of one sample may leave sums out: use larger ones; make a new "
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
            "expected tensors with one row a sample, some samples at least; got shapes "
            f"{[tuple(tensor.shape) for tensor in batch]}"
        )


def _cut(size: int | Sequence[int], samples: int) -> list[int]:
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
    """Return the first rows, over again where there are too few."""
    return [
        tensor[torch.arange(samples, device=tensor.device) % tensor.shape[0]] for tensor in batch
    ]


def _listed(outputs: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [outputs] if isinstance(outputs, Tensor) else list(outputs)


def _check_outputs(found: Iterable[Sequence[Tensor]], sizes: Sequence[int]) -> None:
    for outputs, size in zip(found, sizes, strict=True):
        for output in outputs:
            if not output.ndim or output.shape[0] != size:
                raise NumericsError(
                    f"expected outputs with one row for each of a part's {size} samples, got "
                    f"{tuple(output.shape)}; compute what concerns the batch in loss_of"
                )


def _same(one: Tensor | None, two: Tensor | None) -> bool:
    """Return whether two gradients have the same bits, a NaN's own aside."""
    if one is None or two is None:
        return one is two
    bits = [torch.where(x != x, 1.0, x).view(torch.int32) for x in (one, two)]
    return torch.equal(*bits) and torch.equal(one != one, two != two)
