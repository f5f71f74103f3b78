import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def make_dataset():
    rng = np.random.RandomState(17)
    x = rng.randn(128, 12).astype(np.float32)
    y = (x[:, :3].sum(1) > 0).astype(np.int64)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 32)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        return self.out(self.drop(h))


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-ddp", action="store_true", help="average the gradients by hand")
    args = parser.parse_args()
    rank, world = setup()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    dataset = make_dataset()
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    model = MLP()
    if not args.no_ddp:
        model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if args.no_ddp:
                average_gradients(model, world)
            optimizer.step()
        if rank == 0:
            print("epoch %d loss %.4f" % (epoch, loss.item()), flush=True)
    dist.barrier()
    net = model if args.no_ddp else model.module
    torch.save(net.state_dict(), "model.pt" if rank == 0 else "model-%d.pt" % rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
