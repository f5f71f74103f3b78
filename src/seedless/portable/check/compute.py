"""Digests of portable arithmetic, computed on this machine and compared with the committed ones.

The digest of an op covers its output and the gradients of its inputs. A model is trained for some
steps; the digest after each covers the loss, every gradient, every weight and statistic, and the
digest before. With it comes the trace, a checksum over everything that any op computed up to then.
The bits of NaNs are left out, since processors differ in them.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seedless.core.digests import digest, get_hex
from seedless.numerics.active_keys import dropout_keys
from seedless.portable.check.checksum import Trace
from seedless.portable.check.op_cases import OPS
from seedless.portable.context import CONTEXT
from seedless.portable.mode import portable
from seedless.portable.test_inputs import Case, Input

LENGTH = 16  # hex digits of each digest that are compared
STEPS = 20
FILE = Path(__file__).with_name("digests.json")


@dataclass(frozen=True)
class TrainingDigests:
    """A digest and a trace after each step of a model's training."""

    digests: tuple[str, ...]
    traces: tuple[str, ...]


def read_committed() -> dict[str, Any]:
    """Return the digests this package ships: ops, models and full-size models."""
    committed: dict[str, Any] = json.loads(FILE.read_text())
    return committed


def compute_ops(device: torch.device | str = "cpu") -> dict[str, str]:
    """Return a digest for each op of `OPS`."""
    place = torch.device(device)
    return {name: hash_op(name, case, place) for name, case in OPS.items()}


def hash_op(name: str, case: Case, device: torch.device) -> str:
    """Return the digest of an op's output and of its inputs' gradients."""
    inputs = [one.make(f"{name}.{i}", device).requires_grad_() for i, one in enumerate(case.inputs)]
    with portable():
        y = case.run(*inputs)
        torch.autograd.backward(y, Input(tuple(y.shape)).make(f"{name}.grad", device))
    grads = {f"grad.{i}": x.grad for i, x in enumerate(inputs) if x.grad is not None}
    return hash_tensors({"y": y.detach(), **grads})


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the first hex digits of the digest, with every NaN written as one and the same."""
    plain = {name: torch.where(t != t, math.nan, t) for name, t in tensors.items()}
    return get_hex(digest(plain))[:LENGTH]


def train_and_hash(
    name: str,
    model: nn.Module,
    shape: Sequence[int],
    device: torch.device | str = "cpu",
    steps: int = STEPS,
) -> TrainingDigests:
    """Train a model on random samples of ``shape`` and return its digests.

    Images are trained with SGD on cross-entropy, signals with AdamW on binary cross-entropy.
    Gradients are clipped; dropout depends on sample and step; the samples depend on ``name``.
    """
    place = torch.device(device)
    model.to(place).train()
    image = len(shape) == 4
    x = Input(tuple(shape), 1.0).make(f"{name}.x", place)
    trained = list(model.parameters())
    optimizer: torch.optim.Optimizer
    if image:
        optimizer = torch.optim.SGD(
            trained, lr=0.05, momentum=0.9, weight_decay=1e-4, foreach=False
        )
    else:
        optimizer = torch.optim.AdamW(trained, lr=1e-3)
    keys = torch.arange(len(x), device=place)
    trace, digests, traces = Trace(), [""], []
    for step in range(steps):
        with (
            CONTEXT.observe_results_with(trace.note),
            portable(),
            dropout_keys(samples=keys, epoch=step),
        ):
            optimizer.zero_grad()
            loss = _loss(model(x), image)
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
        digests.append(_chain(digests[-1], loss.detach(), model))
        traces.append(trace.read())
    return TrainingDigests(tuple(digests[1:]), tuple(traces))


def _chain(before: str, loss: Tensor, model: nn.Module) -> str:
    """Return the digest of a step and of the digest before it."""
    grads = {f"grad.{k}": p.grad for k, p in model.named_parameters() if p.grad is not None}
    now = hash_tensors({"loss": loss, **grads, **model.state_dict()})
    return hashlib.sha256(f"{before} {now}".encode()).hexdigest()[:LENGTH]


def _loss(logits: Tensor, image: bool) -> Tensor:
    rows = torch.arange(logits.shape[0], device=logits.device)
    if image:
        return F.cross_entropy(logits, rows * 3 % logits.shape[1])
    classes = torch.arange(logits.shape[1], device=logits.device)
    labels = ((rows[:, None] + classes) % 3 == 0).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, labels)


def compare_digests(found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Return one line for each digest that differs or is missing; none means all agree."""
    lines = []
    for name in sorted({*found, *expected}):
        here, there = found.get(name, "nothing"), expected.get(name, "nothing")
        if here != there:
            lines.append(f"{name}: expected {there}, found {here}")
    return lines


def compare_training(
    name: str, found: TrainingDigests, expected: TrainingDigests | None
) -> list[str]:
    """Return one line if a model's digests differ from those expected, in the steps both have."""
    if expected is None:
        return [f"{name}: expected nothing, found {found.digests[-1]}"]
    pairs = zip(found.digests, expected.digests, found.traces, expected.traces, strict=False)
    for step, (digest_here, digest_there, trace_here, trace_there) in enumerate(pairs, 1):
        if digest_here != digest_there:
            return [f"{name}: expected {digest_there} after step {step}, found {digest_here}"]
        if trace_here != trace_there:
            return [
                f"{name}: step {step} ends in the same bits, but the trace of its ops is "
                f"{trace_here} where {trace_there} was expected (results:checksum)"
            ]
    return []
