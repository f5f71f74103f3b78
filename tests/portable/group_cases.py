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
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

import seedless
from seedless.core.errors import NumericsError
from seedless.portable.batch import group_sums
from seedless.portable.batch.group_step import GroupStep
from tests.portable.test_microbatch import Encoder, Recurrent, fill, make_conformer, make_uniform

SAMPLES = 24
SHARES = {
    "1": (24,),
    "2": (12, 12),
    "3": (8, 8, 8),
    "4": (6, 6, 6, 6),
    "uneven": (2, 13, 0, 9),
    "first empty": (0, 24),
}


class Residual(nn.Module):
    """Convolutions, BatchNorm in training, a BatchNorm without statistics, a pooled head."""

    def __init__(self):
        super().__init__()
        self.enter, self.one = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.norm_one = nn.BatchNorm2d(4), nn.BatchNorm2d(4, track_running_stats=False)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.enter(x.view(-1, 1, 5, 1).expand(-1, 1, 5, 4))
        x = F.relu(self.norm(x))
        return self.head(F.relu(x + self.norm_one(self.one(x))).mean((2, 3)))


class Tied(nn.Module):
    """A weight used twice, a weight in two parts, and a weight norm."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(5, 5)
        self.table = nn.Parameter(torch.zeros(6, 5))
        self.head = weight_norm(nn.Linear(5, 3))

    def forward(self, x):
        x = F.gelu(self.shared(F.gelu(self.shared(x))))
        return self.head(x @ self.table[:5] + self.table[5])


class Stateful(nn.Module):
    """Power iterations in buffers, a mean over batches, a checkpoint, a hook, a frozen layer."""

    def __init__(self):
        super().__init__()
        self.frozen, self.enter = nn.Linear(5, 8).requires_grad_(False), nn.Linear(8, 8)
        self.norm, self.head = nn.BatchNorm1d(8, momentum=None), spectral_norm(nn.Linear(8, 3))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.enter.weight.register_hook(lambda grad: grad * 0.5)

    def forward(self, x):
        self.scale.mul_(0.75)
        x = x * self.scale.float()
        x = checkpoint(lambda x: F.gelu(self.enter(self.frozen(x))), x, use_reentrant=False)
        return self.head(self.norm(x))


def make_stateful():
    torch.manual_seed(3)  # spectral_norm draws its first vectors
    return fill(Stateful())


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
    shares: tuple = tuple(SHARES)
    clips: bool = False
    batches: tuple = (24, 24)
    messages: int = 3


CASES = {
    "conformer": Case(make_ecg_conformer, shares=("2", "3", "4")),
    "batch norm": Case(lambda: fill(Residual()), make_optimizer=sgd, clips=True, messages=3 + 16),
    "gru": Case(lambda: fill(Recurrent()), make_optimizer=sgd, shares=("2", "3", "4")),
    "transformer": Case(lambda: fill(Encoder()), clips=True, shares=("1", "2", "3", "4", "uneven")),
    "tied": Case(lambda: fill(Tied()), shares=("4", "first empty")),
    "state": Case(make_stateful, make_optimizer=sgd, shares=("2", "uneven"), messages=11),
    "contrast": Case(lambda: fill(Tied()), contrast, shares=("2", "uneven")),
    "class weights": Case(lambda: fill(Recurrent()), weigh_classes, shares=("3",)),
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

    def forward(x, y, keys):
        with seedless.dropout_keys(samples=keys, epoch=0, axis=0):
            return net(x)

    with seedless.portable(group=group) as p:
        for number, samples in enumerate(case.batches):
            batch, before = make_batch(samples), p.count_messages()
            optimizer.zero_grad()
            if group is None:
                loss = case.loss_of(forward(*batch), *batch)
                loss.backward()
            else:
                mine = [tensor.split(share_out(samples, shares))[rank] for tensor in batch]
                loss = p.step(forward, case.loss_of, *mine)
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


def find_refusals(group, rank):
    """Return the messages of what a group refuses."""
    net, (x, y, _) = fill(nn.Linear(5, 3)), make_batch(8)
    refused = {}
    other, unlike = fill(nn.Linear(5, 3 + rank)), fill(nn.Linear(5, 3))
    unlike.bias.data[0] += rank
    wrapped = nn.parallel.DistributedDataParallel(net, process_group=group)

    def note(name, run, *arguments):
        try:
            run(*arguments)
            refused[name] = "accepted"
        except NumericsError as error:
            refused[name] = str(error)

    def try_step(name, *arguments):
        with seedless.portable(group=group) as p:
            note(name, p.step, *arguments)

    def forward(x, y):
        return net(x)

    def loss_of(out, x, y):
        return F.cross_entropy(out, y)

    mine = [tensor[4 * rank : 4 * rank + 4] for tensor in (x, y)]
    try_step("one sample", forward, loss_of, x[:1], y[:1])
    try_step("largest", lambda x, y: net(x / x.amax()), loss_of, *mine)
    try_step("centre", lambda x, y: net(x) - net(x).mean(0), loss_of, *mine)
    try_step("flip", lambda x, y: net(x + x.flip(0)), loss_of, *mine)
    two = [tensor[2 * rank : 2 * rank + 2] for tensor in (x, y)]
    try_step("flip of two", lambda x, y: net(x + x.flip(0)), loss_of, *two)
    try_step("roll of two", lambda x, y: net(x + x.roll(2, 0)), loss_of, *two)
    try_step("no samples", forward, loss_of, x[:0], y[:0])
    wide = [x[:4, : 5 - rank], y[:4]]
    try_step("other length", lambda x, y: x.mean(1, keepdim=True) * net.bias, loss_of, *wide)
    try_step("other step", lambda x, y: net(x + net.weight[0]) if rank else net(x), loss_of, *mine)
    try_step("other weights", lambda x, y: unlike(x), loss_of, *mine)
    try_step("other model", lambda x, y: other(x), loss_of, *mine)
    try_step("parameter", forward, lambda out, x, y: out.sum() + net.weight.sum(), *mine)
    with seedless.portable(group=group) as p:
        p.step(forward, lambda out, x, y: out.square().mean(), *mine)
        note("reads more", p.step, forward, loss_of, *mine)
        note("backward", lambda: F.cross_entropy(net(x), y).backward())
        note("collective", lambda: dist.all_reduce(torch.ones(3), group=group))
    try_step("ddp", wrapped, lambda out, x: out.sum(), mine[0])
    try_step("ddp inside", lambda x: wrapped(x), lambda out, x: out.sum(), mine[0])
    return refused


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
        results["refused"] = find_refusals(groups[2], rank)
    Path(folder, f"rank{rank}.json").write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()
