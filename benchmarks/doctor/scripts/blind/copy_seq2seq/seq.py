import argparse
import csv
import os
import time

import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=12, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.enc = nn.GRU(d, d, batch_first=True)
        self.dec = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, src, tgt_in):
        _, h = self.enc(self.emb(src))
        o, _ = self.dec(self.emb(tgt_in), h)
        return self.out(o)


def batch(n=24, length=6):
    src = torch.randint(2, 12, (n, length))
    tgt = src.flip(1)
    bos = torch.ones(n, 1, dtype=torch.long)
    return src, torch.cat([bos, tgt[:, :-1]], 1), tgt


def latest(folder):
    files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return os.path.join(folder, files[-1]) if files else None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=25)
    p.add_argument("--seed", type=int, default=2)
    p.add_argument("--resume", action="store_true")
    p.add_argument("--ckpt-dir", default="ckpt")
    args = p.parse_args()

    torch.manual_seed(args.seed)
    model = Seq2Seq()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    start = 0
    prev = latest(args.ckpt_dir)
    if prev and args.resume:
        state = torch.load(prev)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        start = state["step"]
    elif prev:
        print("found", prev, "(pass --resume to continue from it)")
    os.makedirs(args.ckpt_dir, exist_ok=True)

    with open("history.csv", "a", newline="") as f:
        writer = csv.writer(f)
        for step in range(start, start + args.steps):
            src, tin, tgt = batch()
            loss = nn.functional.cross_entropy(model(src, tin).flatten(0, 1), tgt.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            writer.writerow([time.time(), step, loss.item()])
            if (step + 1) % 5 == 0:
                torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1},
                           os.path.join(args.ckpt_dir, f"step{step + 1:05d}.pt"))
    print("loss", loss.item())
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
