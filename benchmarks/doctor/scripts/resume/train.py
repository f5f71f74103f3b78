import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Sine(Dataset):
    def __init__(self, n=80):
        g = np.random.default_rng(0)
        self.x = g.uniform(-3, 3, (n, 8)).astype(np.float32)
        self.y = np.sin(self.x).sum(1, keepdims=True).astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if random.random() < 0.3:
            x = x + np.random.normal(0, 0.01, x.shape).astype(np.float32)
        return x, self.y[i]


class EpochSampler(torch.utils.data.Sampler):
    """Shuffles by (seed, epoch) and can start in the middle of an epoch."""

    def __init__(self, n, seed=0):
        self.n, self.seed, self.epoch, self.start = n, seed, 0, 0

    def __iter__(self):
        order = np.random.RandomState(self.seed + self.epoch).permutation(self.n)
        yield from order[self.start :].tolist()

    def __len__(self):
        return self.n - self.start


def save_checkpoint(path, **state):
    tmp = path + ".tmp"
    torch.save(state, tmp)
    os.replace(tmp, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "last.pt")

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    dataset = Sine()
    sampler = EpochSampler(len(dataset), args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, generator=gen)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 / (1 + 0.2 * s))
    epoch, batch, step = 0, 0, 0

    if os.path.isfile(path):
        print("=> loading checkpoint", path)
        state = torch.load(path, weights_only=False)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        epoch, batch, step = state["epoch"], state["batch"], state["step"]
        torch.set_rng_state(state["torch_rng"])
        np.random.set_state(state["numpy_rng"])
        random.setstate(state["python_rng"])

    model.train()
    while epoch < args.epochs:
        sampler.epoch, sampler.start = epoch, batch * args.batch_size
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            step += 1
            batch += 1
            print(f"epoch {epoch} step {step} loss {loss.item():.5f} lr {scheduler.get_last_lr()[0]:.5f}")
            if step % args.save_every == 0:
                save_checkpoint(
                    path,
                    model=model.state_dict(),
                    optimizer=optimizer.state_dict(),
                    scheduler=scheduler.state_dict(),
                    epoch=epoch,
                    batch=batch,
                    step=step,
                    torch_rng=torch.get_rng_state(),
                    numpy_rng=np.random.get_state(),
                    python_rng=random.getstate(),
                )
        epoch, batch = epoch + 1, 0
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
