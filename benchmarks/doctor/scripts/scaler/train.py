import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class UNetish(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.down1 = nn.Conv1d(1, ch, 5, padding=2)
        self.down2 = nn.Conv1d(ch, 2 * ch, 5, stride=2, padding=2)
        self.up = nn.ConvTranspose1d(2 * ch, ch, 4, stride=2, padding=1)
        self.out = nn.Conv1d(2 * ch, 1, 1)

    def forward(self, x):
        a = torch.relu(self.down1(x))
        b = torch.relu(self.down2(a))
        c = torch.relu(self.up(b))
        return self.out(torch.cat([a, c], 1))


def save(path, step, model, optimizer, scaler, sampler_gen):
    torch.save(
        {
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": scaler.state_dict(),
            "gen": sampler_gen.get_state(),
        },
        path,
    )


def load(path, model, optimizer, scaler, sampler_gen):
    ckpt = torch.load(path, map_location=device, weights_only=True)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scaler.load_state_dict(ckpt["scaler"])
    sampler_gen.set_state(ckpt["gen"].cpu())
    print("resumed from step", ckpt["step"])
    return ckpt["step"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="runs")
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--bs", type=int, default=16)
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    ckpt_path = os.path.join(args.out, "last.pt")

    torch.manual_seed(11)
    t = torch.linspace(0, 1, 64)
    phase = torch.rand(48, 1) * 6.28
    clean = torch.sin(12 * t + phase)[:, None]
    noisy = clean + 0.2 * torch.randn_like(clean)
    gen = torch.Generator().manual_seed(5)
    loader = DataLoader(TensorDataset(noisy, clean), batch_size=args.bs, shuffle=True, generator=gen)

    model = UNetish().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler(device, init_scale=1000.0, growth_factor=1.5, growth_interval=3)

    step = 0
    if os.path.exists(ckpt_path):
        step = load(ckpt_path, model, optimizer, scaler, gen)

    while step < args.epochs * len(loader):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            step += 1
            print("step", step, "loss %.5f" % loss.item(), "scale", scaler.get_scale())
        save(ckpt_path, step, model, optimizer, scaler, gen)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
