"""Train one of three networks for a number of steps and write the time of each step."""
import argparse
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(3, 32, 32, generator=g)
        return (x if i % 2 else x.flip(-1)), i % 10


class Frames(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(64, 40, generator=g), i % 10


def conv(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


def small_cnn():
    return nn.Sequential(
        conv(3, 32), conv(32, 32), conv(32, 64, 2), conv(64, 64), conv(64, 128, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
    )


class ConformerBlock(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.ff1 = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim))
        self.norm = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout=0.1, batch_first=True)
        self.cnorm = nn.LayerNorm(dim)
        self.pw1 = nn.Conv1d(dim, 2 * dim, 1)
        self.dw = nn.Conv1d(dim, dim, 15, padding=7, groups=dim)
        self.bn = nn.BatchNorm1d(dim)
        self.pw2 = nn.Conv1d(dim, dim, 1)
        self.ff2 = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim))
        self.out = nn.LayerNorm(dim)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        h = self.norm(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        h = F.glu(self.pw1(self.cnorm(x).transpose(1, 2)), dim=1)
        x = x + self.pw2(F.silu(self.bn(self.dw(h)))).transpose(1, 2)
        return self.out(x + 0.5 * self.ff2(x))


class Conformer(nn.Module):
    def __init__(self, dim=96, depth=3):
        super().__init__()
        self.inp = nn.Linear(40, dim)
        self.blocks = nn.Sequential(*[ConformerBlock(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        return self.head(self.blocks(self.inp(x)).mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--net", choices=["cnn", "conformer", "cnn-workers"], default="cnn")
    ap.add_argument("--steps", type=int, default=16)
    ap.add_argument("--batch", type=int, default=32)
    args = ap.parse_args()
    torch.manual_seed(0)
    data = (Frames if args.net == "conformer" else Images)(args.steps * args.batch)
    workers = 2 if args.net == "cnn-workers" else 0
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, num_workers=workers)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = (Conformer() if args.net == "conformer" else small_cnn()).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    wall, cpu = [time.perf_counter()], [time.process_time()]
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss.item()
        wall.append(time.perf_counter())
        cpu.append(time.process_time())
    with open("times.json", "w") as f:
        json.dump({"wall": wall, "cpu": cpu}, f)


if __name__ == "__main__":
    main()
