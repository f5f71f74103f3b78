import argparse

import torch
from torch import nn

from checkpoint import CheckpointManager
from ema import EMA


def batch(step, n=32):
    i = torch.arange(n, dtype=torch.float32) + step * n
    x = torch.stack([torch.sin(0.3 * i), torch.cos(0.7 * i), torch.sin(0.05 * i)], 1)
    return x, (x[:, 0] * x[:, 1] + x[:, 2]).unsqueeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--save-every", type=int, default=10)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(3, 24), nn.SiLU(), nn.Linear(24, 1))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    ckpt = CheckpointManager()
    ckpt.restore(model, opt)
    ema = EMA(model)

    for step in range(args.steps):
        x, y = batch(step)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
        if (step + 1) % args.save_every == 0:
            ckpt.save(model, opt)
            print(f"step {step + 1} loss {loss.item():.5f}")
    torch.save(ema.shadow.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
