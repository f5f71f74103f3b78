"""What is asked of each network: one function for each column of the table.

Every function takes a network and returns a dict of plain values. An error is an answer too: its
text is recorded under ``error``.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

import seedless
from benchmarks.zoo.network import Network, compute_loss
from benchmarks.zoo.weights import fill_from_counter, switch_dropout_off
from seedless.portable.check.compute import hash_tensors

STEPS = 2
Answer = dict[str, Any]


def build(network: Network) -> nn.Module:
    """Return the network as its library initializes it, in training mode without dropout."""
    torch.manual_seed(0)
    model = network.make().train()
    switch_dropout_off(model)
    return model


def measure_gradient(model: nn.Module, network: Network) -> float:
    """Return the norm of the gradient of all parameters, in plain arithmetic."""
    model.zero_grad(set_to_none=True)
    positional, named = network.make_inputs()
    compute_loss(model(*positional, **named)).backward()
    grads = [p.grad.double().square().sum() for p in model.parameters() if p.grad is not None]
    return math.sqrt(float(sum(grads)))


def answer_init(network: Network) -> Answer:
    """Try `seedless.initialize` without marks; compare gradients with the library's own start."""
    model = build(network)
    own = measure_gradient(model, network)
    start = time.process_time()
    seedless.initialize(model, "dct")
    seconds = time.process_time() - start
    ours = measure_gradient(model, network)
    return {
        "seconds": seconds,
        "gradient": ours,
        "own gradient": own,
        "ratio": ours / own if own else None,
    }


def answer_convert(network: Network) -> Answer:
    """Convert the network with its dropout on, and compute it with the keys of its samples.

    ``repeats``: two passes with the same keys are equal. ``varies``: another epoch differs, where
    the network draws at all.
    """
    torch.manual_seed(0)
    model = seedless.convert(network.make().train())
    report = model.seedless_report
    start = copy.deepcopy(model.state_dict())  # a pass changes running statistics
    positional, named = network.make_inputs()
    outputs = []
    for epoch in (0, 0, 1):
        model.load_state_dict(start)
        with torch.no_grad(), use_keys(network, positional, named, epoch):
            outputs.append(float(compute_loss(model(*positional, **named), has_gradient=False)))
    return {
        "replaced": len(report.replaced),
        "intercepted": len(report.intercepted),
        "remaining": [str(one)[:200] for one in report.remaining],
        "repeats": outputs[0] == outputs[1],
        "varies": outputs[0] != outputs[2],
    }


def use_keys(
    network: Network, positional: Sequence[Tensor], named: Mapping[str, Tensor], epoch: int
) -> AbstractContextManager[None]:
    """Return the context in which sample i of a batch has key i."""
    first = [*positional, *named.values()][0]
    keys = torch.arange(first.shape[network.samples_axis], device=first.device)
    return seedless.dropout_keys(samples=keys, epoch=epoch, step=epoch)


def train(
    model: nn.Module,
    network: Network,
    device: str,
    arithmetic: Callable[[], Any],
    steps: int = STEPS,
) -> tuple[list[float], list[float]]:
    """Take steps of AdamW in place; return the losses and the seconds of processor time of each."""
    model.to(device)
    dtype = next(model.parameters()).dtype
    positional, named = network.make_inputs()
    positional = [_place(one, device, dtype) for one in positional]
    named = {key: _place(one, device, dtype) for key, one in named.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, seconds = [], []
    for step in range(steps):
        start = time.process_time()
        with use_keys(network, positional, named, step), arithmetic():
            optimizer.zero_grad()
            loss = compute_loss(model(*positional, **named))
            loss.backward()
            optimizer.step()
        losses.append(float(loss.detach()))
        seconds.append(time.process_time() - start)
    return losses, seconds


def _place(value: Tensor, device: str, dtype: torch.dtype) -> Tensor:
    return value.to(device, dtype) if value.is_floating_point() else value.to(device)


def hash_model(model: nn.Module) -> str:
    """Return the digest of weights and buffers; all NaNs count as one value."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return hash_tensors({name: value.detach().cpu() for name, value in tensors.items()})


@lru_cache(maxsize=1)
def make_start(network: Network) -> nn.Module:
    """Return the network with weights from the counter; what trains it must copy it first.

    It is converted, so that what it draws, as the noise of an autoencoder, is the same in every
    arithmetic.
    """
    model = build(network)
    fill_from_counter(model)
    return seedless.convert(model)


@lru_cache(maxsize=2)
def train_portable(network: Network, device: str, threads: int) -> tuple[str, list[float], float]:
    """Return the digest after two steps in portable arithmetic, the losses, a step's seconds."""
    torch.set_num_threads(threads)
    model = copy.deepcopy(make_start(network))
    losses, seconds = train(model, network, device, seedless.portable)
    return hash_model(model), losses, seconds[-1]


def answer_portable(network: Network, device: str = "cpu") -> Answer:
    """Take two steps of AdamW in portable arithmetic and hash the weights; on a CPU with 1 thread.

    The answer names the digest of the start too: another version of a library may build another
    network, and then the digests cannot be compared.
    """
    start = make_start(network)
    digest, losses, seconds = train_portable(network, device, 1)
    return {
        "parameters": sum(p.numel() for p in start.parameters()),
        "start": hash_model(start),
        "digest": digest,
        "losses": losses,
        "finite": all(map(math.isfinite, losses)),
        "seconds": seconds,
    }


def answer_threads(network: Network) -> Answer:
    """Compare the weights after two steps with 1 and with 2 threads, in portable arithmetic."""
    digests = [train_portable(network, "cpu", threads)[0] for threads in (1, 2)]
    return {"same": digests[0] == digests[1]}


def answer_plain(network: Network) -> Answer:
    """Do the same in plain arithmetic; the seconds of a step with 1 thread."""
    digests, loss, seconds = [], math.nan, math.nan
    for threads in (2, 1):
        torch.set_num_threads(threads)
        model = copy.deepcopy(make_start(network))
        losses, taken = train(model, network, "cpu", nullcontext)
        digests.append(hash_model(model))
        loss, seconds = losses[0], taken[-1]
    return {"same": digests[0] == digests[1], "loss": loss, "seconds": seconds}


def answer_float64(network: Network) -> Answer:
    """Return the first loss in float64: what both arithmetics should come close to."""
    torch.set_num_threads(1)
    model = copy.deepcopy(make_start(network)).double()
    losses, _ = train(model, network, "cpu", nullcontext, steps=1)
    return {"loss": losses[0]}


COLUMNS: dict[str, Callable[..., Answer]] = {
    "init": answer_init,
    "convert": answer_convert,
    "portable": answer_portable,
    "threads": answer_threads,
    "plain": answer_plain,
    "float64": answer_float64,
}
