"""A script whose every number is exact in float32, so that every machine repeats its bits."""

import json
from pathlib import Path

import torch
from torch import nn

torch.set_num_threads(1)
rows = torch.tensor(json.loads(Path("table.json").read_text()))
model = nn.Linear(2, 1)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[0.5, -0.25]]))
    model.bias.fill_(0.125)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for start in (0, 2):
    part = rows[start : start + 2]
    loss = (model(part[:, :2]) - part[:, 2:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
Path("weights.json").write_text(json.dumps(weights))
