"""Training in a group of processes: models, losses, and what each rank of a group does.

`run_worlds` starts the processes once; groups of 1, 2, 3, 4 of them train each case.
"""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.core.errors import NumericsError
from seedless.portable.batch import group_sums
from seedless.portable.batch.group_step import GroupStep
from tests.portable.group_models import (
    SAMPLES,
    Critic,
    Residual,
    Tasks,
    Tied,
    make_stateful,
    penalize,
)
from tests.portable.test_microbatch import Encoder, Recurrent, fill, make_conformer, make_uniform

SHARES = {
    "1": (24,),
    "2": (12, 12),
    "3": (8, 8, 8),
    "4": (6, 6, 6, 6),
    "uneven": (2, 13, 0, 9),
    "first empty": (0, 24),
    "single samples": (1, 22, 1),  # the last: not for models with BatchNorm
}


def make_ecg_conformer():
    net = make_conformer()
    return nn.Sequential(nn.Unflatten(1, (1, 5)), nn.Upsample(40), Leads(), net, Take())


class Leads(nn.Module):
    def forward(self, x):
        return x.expand(-1, 12, -1)


class Take(nn.Module):
    def forward(self, x):
        return x[:, :3]


def cross_entropy(outputs, x, y, keys):
    return F.cross_entropy(outputs, y, label_smoothing=0.1)


def contrast(outputs, x, y, keys):
    """A loss in which every sample meets every other."""
    near = F.normalize(outputs) @ F.normalize(outputs).T
    return F.cross_entropy(near * 4, torch.arange(len(y))) + F.mse_loss(outputs[:, 0], x[:, 0])


def weigh_classes(outputs, x, y, keys):
    """A loss whose class weights depend on the labels of the whole batch, which Python reads."""
    counts = torch.tensor([float(y.tolist().count(kind)) for kind in range(3)])
    scale = 1 + sum(keys.tolist()) % 5
    return F.cross_entropy(outputs, y, weight=len(y) / (counts + 1)) * scale


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


@dataclass(frozen=True)
class Case:
    make: object
    loss_of: object = cross_entropy
    make_optimizer: object = adamw
    shares: tuple = tuple(SHARES)[:-1]
    clips: bool = False
    batches: tuple = (24, 24)
    messages: int = 3
    freezes: str = ""  # a layer, in the second step


CASES = {
    "conformer": Case(make_ecg_conformer, shares=("2", "3", "4")),
    "batch norm": Case(lambda: fill(Residual()), make_optimizer=sgd, clips=True, messages=3 + 16),
    "gru": Case(lambda: fill(Recurrent()), make_optimizer=sgd, shares=("2", "3", "4")),
    "transformer": Case(lambda: fill(Encoder()), clips=True, shares=("1", "2", "3", "4", "uneven")),
    "tied": Case(lambda: fill(Tied()), shares=("4", "first empty")),
    "state": Case(make_stateful, make_optimizer=sgd, shares=("2", "uneven"), messages=11),
    "contrast": Case(lambda: fill(Tied()), contrast, shares=("2", "uneven")),
    "class weights": Case(lambda: fill(Recurrent()), weigh_classes, shares=("3",)),
    "tasks": Case(
        lambda: fill(Tasks()), None, shares=("2",), batches=(24, 24, 24), freezes="enter"
    ),
    "penalty": Case(
        lambda: fill(Critic()), penalize, shares=("1", "3", "first empty"), messages=3 + 2
    ),
    "single samples": Case(lambda: fill(Tied()), shares=("single samples",), batches=(24, 3, 1)),
    "small last batch": Case(
        lambda: fill(Residual()), batches=(19, 5, 3), messages=19, shares=("4",)
    ),
}


def make_batch(samples):
    return (
        make_uniform("x", SAMPLES, 5)[:samples] * 3,
        (torch.arange(SAMPLES) % 3)[:samples],
        (torch.arange(SAMPLES) * 977)[:samples],
    )


def train(case, group=None, shares=None, rank=0):
    """Train a case, in a group or without one by loss.backward().

    Returns the digest of losses, gradients, weights and buffers, and the messages of the last step.
    """
    net = case.make().train()
    optimizer, seen, messages = case.make_optimizer(net.parameters()), {}, 0
    loss_of = case.loss_of or net.measure

    def forward(x, y, keys):
        with seedless.dropout_keys(samples=keys, epoch=0, axis=0):
            return net(x)

    with seedless.portable(group=group) as p:
        for number, samples in enumerate(case.batches):
            batch, before = make_batch(samples), p.count_messages()
            optimizer.zero_grad()
            if number == 1 and case.freezes:
                getattr(net, case.freezes).requires_grad_(False)
            if group is None:
                loss = loss_of(forward(*batch), *batch)
                loss.backward()
            else:
                mine = [tensor.split(share_out(samples, shares))[rank] for tensor in batch]
                loss = p.step(forward, loss_of, *mine)
            seen[f"loss{number}"] = loss.detach()
            messages = p.count_messages() - before
            if case.clips:
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            for name, parameter in net.named_parameters():
                if parameter.grad is not None:
                    seen[f"{number}.{name}"] = parameter.grad.clone()
    return seedless.digest(seen | dict(net.state_dict())), messages


def share_out(samples, shares):
    """Return the sizes of the ranks' parts; a shorter batch is dealt out two by two."""
    if samples == sum(shares):
        return list(shares)
    pairs, sizes = samples // 2, [0] * len(shares)
    for number in range(pairs):
        sizes[number % len(shares)] += 2
    sizes[0] += samples % 2
    return sizes


@contextmanager
def sum_natively(rank):
    """Let rank 1 round its own sums to float32, as an ordinary library does, and try no step."""
    add_own, trial = group_sums.GroupSums._add_own, GroupStep._try

    def add(self, one, exponents, is_narrow):
        high, low = add_own(self, one, exponents, is_narrow)
        return (high.to(torch.float32).to(high.dtype), low) if rank == 1 else (high, low)

    group_sums.GroupSums._add_own, GroupStep._try = add, lambda *_: None
    try:
        yield trial
    finally:
        group_sums.GroupSums._add_own, GroupStep._try = add_own, trial


def run_rank(rank, size, folder):
    """Be one of the processes: train every case in groups of the first n ranks."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size
    )
    groups = {n: dist.new_group(list(range(n))) for n in range(1, size + 1)}
    results = {}
    for name, case in CASES.items():
        for label in case.shares:
            shares = SHARES[label]
            if rank < len(shares):
                found = train(case, groups[len(shares)], shares, rank)
                results[f"{name}/{label}"] = found
    if rank < 2:
        gru, shares = CASES["gru"], SHARES["2"]
        with sum_natively(rank) as trial:
            results["native"] = train(gru, groups[2], shares, rank)
            GroupStep._try = trial
            try:
                results["tried"] = train(gru, groups[2], shares, rank)
            except NumericsError as error:
                results["tried"] = str(error)
        from tests.portable.group_refusals import find_refusals  # which imports this module

        results["refused"] = find_refusals(groups[2], rank)
    Path(folder, f"rank{rank}.json").write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()
