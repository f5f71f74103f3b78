import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=12)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return p.parse_args()


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, dim, depth=2, classes=5):
        super().__init__()
        self.embed = nn.Linear(16, dim)
        self.pos = nn.Parameter(torch.zeros(1, 16, dim))
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x) + self.pos
        for blk in self.blocks:
            x = blk(x)
        return self.head(x.mean(1))


def get_batch(step, args, device):
    g = torch.Generator().manual_seed(10_000 + step)
    x = torch.randn(args.batch, 16, 16, generator=g)
    y = (x.mean(dim=(1, 2)) * 40).long().clamp(-2, 2) + 2
    return x.to(device), y.to(device)


def main():
    args = get_args()
    torch.manual_seed(1337)
    device = torch.device(args.device)
    dtype = getattr(torch, os.environ.get("AMP_DTYPE", "bfloat16"))
    model = TinyViT(args.dim).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 5))

    for step in range(args.iters):
        x, y = get_batch(step, args, device)
        with torch.autocast(device_type=device.type, dtype=dtype, enabled=args.amp):
            logits = model(x)
            loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        warmup.step()
        if step % 4 == 0 or step == args.iters - 1:
            print(f"step {step:4d} | loss {loss.item():.4f} | lr {warmup.get_last_lr()[0]:.2e}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
