import warnings

import numpy as np
import torch
from torch import nn

from layers import LowRankLinear, StochasticDepth

cfg = {"seed": 64, "dim": 12, "rank": 4, "depth": 3, "steps": 36, "max_lr": 0.02}


def windows(series, width):
    out = np.empty((len(series) - width, width), dtype=np.float32)
    for i in range(len(out)):
        out[i] = series[i:i + width]
    return out


torch.manual_seed(cfg["seed"])
series = np.sin(np.arange(300) * 0.2) + 0.4 * np.sin(np.arange(300) * 0.77)
x = torch.from_numpy(windows(series, cfg["dim"]))
y = torch.from_numpy(series[cfg["dim"]:].astype(np.float32))

if not torch.cuda.is_available():
    warnings.warn("no GPU, training will be slow")

blocks = [StochasticDepth(nn.Sequential(LowRankLinear(cfg["dim"], cfg["dim"], cfg["rank"]), nn.GELU()), 0.1) for _ in range(cfg["depth"])]
model = nn.Sequential(*blocks, nn.Linear(cfg["dim"], 1))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg["max_lr"], total_steps=cfg["steps"])
for step in range(cfg["steps"]):
    idx = torch.randint(len(x), (32,))
    loss = (model(x[idx]).squeeze(-1) - y[idx]).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
print("mae", loss.item())
torch.save(model.state_dict(), "model.pt")
