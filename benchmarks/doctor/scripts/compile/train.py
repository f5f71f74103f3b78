import argparse
import os

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--no-compile", action="store_true")
args = parser.parse_args()

torch.manual_seed(2024)
use_compile = not args.no_compile and os.environ.get("USE_COMPILE", "1") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(16, 64)
        self.l2 = nn.Linear(64, 1)

    def forward(self, x):
        h = torch.tanh(self.l1(x))
        h = h * torch.sigmoid(h) + torch.exp(-h.pow(2))
        h = h / (1e-3 + h.std(dim=1, keepdim=True))
        return self.l2(h)


model = Regressor().to(device)
x = torch.randn(256, 16, device=device)
y = x.pow(2).sum(1, keepdim=True).sin()
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
net = torch.compile(model) if use_compile else model

for step in range(args.steps):
    idx = torch.randperm(256)[:64]
    pred = net(x[idx])
    loss = (pred - y[idx]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())

torch.save(model.state_dict(), "model.pt")
