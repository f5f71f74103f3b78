import torch
from torch import nn

from schedule import NoiseSchedule

torch.manual_seed(0)


class EpsNet(nn.Module):
    def __init__(self, dim=2, hidden=32, T=50):
        super().__init__()
        self.temb = nn.Embedding(T, 8)
        self.net = nn.Sequential(nn.Linear(dim + 8, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.temb(t)], -1))


def two_moons(n):
    a = torch.linspace(0, 3.1416, n // 2)
    upper = torch.stack([a.cos(), a.sin()], 1)
    lower = torch.stack([1 - a.cos(), 0.5 - a.sin()], 1)
    return torch.cat([upper, lower])


data = two_moons(256)
sched = NoiseSchedule()
model = EpsNet()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

for step in range(30):
    x0 = data[torch.randint(0, len(data), (64,))]
    t = sched.sample_t(64)
    eps = torch.randn_like(x0)
    loss = (model(sched.q_sample(x0, t, eps), t) - eps).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(step, loss.item())

torch.save(model.state_dict(), "model.pt")
