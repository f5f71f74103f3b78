"""Does portable arithmetic on this machine give the bits that it gives elsewhere?

Digests of ops and of seven small models are computed and compared with those that come with the
package; with ``full`` also those of the conformer and resnet18 in their published sizes. If they
are equal, a run in portable arithmetic has the same bits here as on other machines.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from seedless.core.errors import NumericsError
from seedless.core.registry import choose
from seedless.init import initialize
from seedless.models import MODELS, build
from seedless.portable.check.compute import (
    STEPS,
    TrainingDigests,
    compare_digests,
    compare_training,
    compute_ops,
    read_committed,
    train_and_hash,
)
from seedless.portable.check.networks import INPUT_SHAPE, NETWORKS
from seedless.portable.engine_choice import explain_engine
from seedless.portable.kernels.launch import find_kernels

RECORDINGS, IMAGES = (4, 12, 120), (4, 3, 16, 16)
FULL = {"conformer": (2, 12, 1000), "resnet18": (4, 3, 32, 32)}
Report = Callable[[str, TrainingDigests], None]


@dataclass(frozen=True)
class Check:
    """What was computed here, and a line for each difference from the shipped digests."""

    device: str
    ops: Mapping[str, str]
    models: Mapping[str, TrainingDigests]
    full: Mapping[str, TrainingDigests]
    differences: tuple[str, ...]
    fused: bool = False  # whether compiled kernels were used, which changes the time alone
    engine: str = "float64"  # what computed the matrix products, which changes the time alone
    engine_reason: str = ""  # why that one

    @property
    def same(self) -> bool:
        """Whether everything that was computed agrees."""
        return not self.differences

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        everything = f"{len(self.ops)} ops and {len(self.models) + len(self.full)} models"
        if self.same:
            return (
                f"SAME: {everything} on {self.device} have the shipped digests; runs in portable "
                "arithmetic have the same bits here as elsewhere"
            )
        return (
            f"DIFFERENT: {len(self.differences)} of {everything} on {self.device} have other "
            "digests than those shipped; a portable run made here is not what others will get"
        )


def make_model(name: str, small: bool) -> nn.Module:
    """Return one of our models, initialized."""
    model = build(name, small=small)
    initialize(model, "dct")
    return model


def compute_models(
    device: str = "cpu",
    steps: int = STEPS,
    report: Report = lambda name, digests: None,
    *,
    full: bool = False,
) -> dict[str, TrainingDigests]:
    """Train every small model, or those of `FULL` in their published sizes; return the digests.

    ``report`` is called after each model.
    """
    shapes = dict(FULL)
    if not full:
        shapes = {name: IMAGES if name == "resnet18" else RECORDINGS for name in MODELS}
        shapes |= dict.fromkeys(NETWORKS, INPUT_SHAPE)
    results = {}
    for name, shape in shapes.items():
        model = NETWORKS[name]() if name in NETWORKS else make_model(name, not full)
        results[name] = train_and_hash(name, model, shape, device, steps)
        report(name, results[name])
    return results


def pack(trained: Mapping[str, TrainingDigests]) -> dict[str, dict[str, list[str]]]:
    """Return digests of training as plain values, as in the shipped file."""
    return {name: {k: list(v) for k, v in asdict(fit).items()} for name, fit in trained.items()}


def unpack(packed: Mapping[str, Any]) -> dict[str, TrainingDigests]:
    """Return digests of training from plain values: the inverse of `pack`."""
    return {
        name: TrainingDigests(tuple(fit["digests"]), tuple(fit["traces"]))
        for name, fit in packed.items()
    }


def find_differences(
    ops: Mapping[str, str],
    models: Mapping[str, TrainingDigests],
    full: Mapping[str, TrainingDigests],
) -> tuple[str, ...]:
    """Return one line for each op and model whose digests differ from the shipped ones."""
    shipped = read_committed()
    lines = compare_digests(ops, shipped["ops"])
    for trained, kind in ((models, "models"), (full, "full")):
        expected = unpack(shipped[kind])
        for name, fit in trained.items():
            lines += compare_training(name, fit, expected.get(name))
    return tuple(lines)


def check(
    device: str = "cpu", full: bool = False, write: Callable[[str], None] | None = None
) -> Check:
    """Compute every digest on a device and compare it with the shipped one, a line for each."""
    choose("device", device, dict.fromkeys(("cpu", "cuda")))
    if device == "cuda" and not torch.cuda.is_available():
        raise NumericsError("expected a CUDA device, found none here; check with --device cpu")
    write = write or (lambda line: None)
    shipped = read_committed()
    write(f"{'':<32} {'here':<16}  {'shipped':<16}")

    def report(kind: str) -> Report:
        there = unpack(shipped[kind])
        return lambda name, fit: write(_row(f"{kind} {name}", fit, there.get(name)))

    ops = compute_ops(device)
    for name, here in ops.items():
        there = shipped["ops"].get(name, "")
        write(f"{'op ' + name:<32} {here}  {there:<16}  {'same' if here == there else 'DIFFERS'}")
    models = compute_models(device, report=report("models"))
    large = compute_models(device, report=report("full"), full=True) if full else {}
    used = torch.empty(0, device=device).device
    fused, (engine, reason) = find_kernels(used) is not None, explain_engine(used)
    write(f"compiled kernels: {'used' if fused else 'none here, slower ops were used instead'}")
    write(f"matrix products: computed by the engine {engine}, {reason}")
    differences = find_differences(ops, models, large)
    return Check(device, ops, models, large, differences, fused, engine, reason)


def _row(name: str, here: TrainingDigests, there: TrainingDigests | None) -> str:
    """Return a model's last digest, the shipped one, and the verdict over every step."""
    shipped = there.digests[-1] if there else ""
    verdict = "DIFFERS" if compare_training(name, here, there) else "same"
    return f"{name:<32} {here.digests[-1]}  {shipped:<16}  {verdict}"
