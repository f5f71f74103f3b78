"""Steps that a group of two processes refuses, and what it says."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import seedless
from seedless.core.errors import NumericsError
from tests.portable.group_cases import make_batch
from tests.portable.test_microbatch import fill


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
        except RuntimeError as error:
            refused[name] = f"RuntimeError: {error}"

    def try_step(name, *arguments):
        with seedless.portable(group=group) as p:
            note(name, p.step, *arguments)

    def forward(x, y):
        return net(x)

    def loss_of(out, x, y):
        return F.cross_entropy(out, y)

    mine = [tensor[4 * rank : 4 * rank + 4] for tensor in (x, y)]
    normed = fill(nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)))
    try_step("one sample", lambda x, y: normed(x), loss_of, x[:1], y[:1])
    try_step("largest", lambda x, y: net(x / x.amax()), loss_of, *mine)
    try_step("centre", lambda x, y: net(x) - net(x).mean(0), loss_of, *mine)
    try_step("flip", lambda x, y: net(x + x.flip(0)), loss_of, *mine)
    two = [tensor[2 * rank : 2 * rank + 2] for tensor in (x, y)]
    try_step("flip of two", lambda x, y: net(x + x.flip(0)), loss_of, *two)
    try_step("roll of two", lambda x, y: net(x + x.roll(2, 0)), loss_of, *two)
    try_step("roll of four", lambda x, y: net(x + x.roll(4, 0)), loss_of, *mine)
    far = [make_batch(24)[0][12 * rank : 12 * rank + 12], make_batch(24)[1][:12]]
    try_step("shift of four", lambda x, y: net(x + torch.cat([x[4:], x[:4]])), loss_of, *far)
    try_step("index", lambda x, y: net(x + x[torch.tensor([7, 6] * (len(x) // 2))]), loss_of, *far)
    numbers = torch.arange(8)[4 * rank : 4 * rank + 4].flip(0)
    try_step("number", lambda x, n: net(x + x[n]), lambda out, x, n: out.mean(), mine[0], numbers)
    try_step("fixed size", lambda x, y: net(x.reshape(4, 5)), loss_of, *mine)
    kept = [torch.zeros(1)]

    def keep(x, y):
        kept.append(x)
        return net(x + kept[-2])

    try_step("kept", keep, loss_of, *mine)
    calls = []

    def count(out, x, y):
        calls.append(0)
        return F.cross_entropy(out, y) * len(calls)

    try_step("counts", forward, count, *mine)
    try_step("nothing trained", lambda x, y: x[:, :3] * 2, loss_of, *mine)
    try_step("fails", lambda x, y: net(x) if rank else net(x[:, :4]), loss_of, *mine)
    try_step("takes gradient", forward, loss_of, mine[0].clone().requires_grad_(), mine[1])

    def recompute(x, y):
        return checkpoint(net, x + net.bias[0], use_reentrant=True)

    try_step("reentrant", recompute, loss_of, *mine)
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(normed)
    try_step("sync", lambda x, y: sync(x), loss_of, *mine)
    frozen = fill(nn.Linear(5, 3))
    frozen.bias.requires_grad_(not rank)
    try_step("frozen here", lambda x, y: frozen(x), loss_of, *mine)
    try_step("no samples", forward, loss_of, x[:0], y[:0])
    wide = [x[:4, : 5 - rank], y[:4]]
    try_step("other length", lambda x, y: x.mean(1, keepdim=True) * net.bias, loss_of, *wide)
    try_step("other step", lambda x, y: net(x + net.weight[0]) if rank else net(x), loss_of, *mine)
    try_step("other weights", lambda x, y: unlike(x), loss_of, *mine)
    try_step("other model", lambda x, y: other(x), loss_of, *mine)
    try_step("parameter", forward, lambda out, x, y: out.sum() + net.weight.sum(), *mine)
    reads = []
    with seedless.portable(group=group) as p:

        def read_more(out, x, y):
            return loss_of(out, x, y) if reads else out.square().mean()

        p.step(forward, read_more, *mine)
        reads.append(True)
        note("reads more", p.step, forward, read_more, *mine)
        note("backward", lambda: F.cross_entropy(net(x), y).backward())
        note("collective", lambda: dist.all_reduce(torch.ones(3), group=group))
    try_step("ddp", wrapped, lambda out, x: out.sum(), mine[0])
    try_step("ddp inside", lambda x: wrapped(x), lambda out, x: out.sum(), mine[0])
    return refused


def lose_rank(rank, folder):
    """Be one of two processes, of which the second ends without a word after a step."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    net, (x, y, _) = fill(nn.Linear(5, 3)), make_batch(8)
    mine = [tensor[4 * rank : 4 * rank + 4] for tensor in (x, y)]
    with seedless.portable(group=dist.group.WORLD) as p:
        p.step(lambda x, y: net(x), lambda out, x, y: F.cross_entropy(out, y), *mine)
        if rank == 1:
            os._exit(0)
        try:
            p.step(lambda x, y: net(x), lambda out, x, y: F.cross_entropy(out, y), *mine)
        except NumericsError as error:
            Path(folder, "said").write_text(str(error))
    os._exit(0)
