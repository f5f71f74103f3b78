#!/usr/bin/env python
import time
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn
from torch.utils.data import DataLoader, TensorDataset

C = SimpleNamespace(seed=31, budget_s=0.7, batch=16, lr=0.02, swa_lr=0.01, swa_start=10)

np.random.seed(C.seed)
torch.manual_seed(C.seed)

k = torch.arange(256, dtype=torch.float32)
x = torch.stack([torch.cos(k * 0.21), torch.sin(k * 0.13), (k % 9) / 9, (k % 5) / 5], 1)
y = ((x[:, 0] + x[:, 2]) > 0.4).long()
loader = DataLoader(TensorDataset(x, y), batch_size=C.batch, shuffle=True)

net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=C.lr, momentum=0.9)
swa_net = AveragedModel(net)
swa_sched = SWALR(opt, swa_lr=C.swa_lr, anneal_epochs=2)


def batches():
    while True:
        yield from loader


t0 = time.monotonic()
step = 0
for xb, yb in batches():
    loss = nn.functional.cross_entropy(net(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
    step += 1
    if step > C.swa_start:
        swa_net.update_parameters(net)
        swa_sched.step()
    if step > 20 and time.monotonic() - t0 > C.budget_s:
        break

update_bn(loader, swa_net)
print(f"stopped, last loss {loss.item():.4f}")
torch.save(swa_net.module.state_dict(), "model.pt")
