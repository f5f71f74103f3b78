import time

import torch
from torch import nn

torch.manual_seed(0)


class PolyFit(nn.Module):
    def __init__(self, degree=5):
        super().__init__()
        self.mix = nn.Linear(degree, 12)
        self.drop = nn.Dropout(0.05)
        self.out = nn.Linear(12, 1)
        self.degree = degree

    def forward(self, x):
        feats = torch.cat([x ** k for k in range(1, self.degree + 1)], dim=-1)
        return self.out(self.drop(torch.tanh(self.mix(feats))))


x = torch.linspace(-1, 1, 200).unsqueeze(1)
y = torch.exp(-3 * x ** 2) * torch.cos(4 * x)

model = PolyFit()
fast = torch.compile(model, backend="aot_eager")
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
t = time.perf_counter()
for step in range(20):
    idx = torch.randint(0, 200, (64,))
    loss = nn.functional.mse_loss(fast(x[idx]), y[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step in (0, 10, 19):
        print(f"step {step:3d} loss {loss.item():.5f}  {1e3 * (time.perf_counter() - t):.0f} ms")
torch.save(model.state_dict(), "model.pt")
