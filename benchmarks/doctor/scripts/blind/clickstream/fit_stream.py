import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader

from stream import Sessions, seed_worker


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--samples", type=int, default=320)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=6)
    args = ap.parse_args()
    print(f"pid {os.getpid()}, {args.workers} workers")

    torch.manual_seed(args.seed)
    g = torch.Generator()
    g.manual_seed(args.seed)
    loader = DataLoader(Sessions(args.samples, args.seed), batch_size=20, num_workers=args.workers,
                        worker_init_fn=seed_worker, generator=g)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 4 == 0:
            print(step, round(loss.item(), 4))
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
