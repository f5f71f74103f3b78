import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from views import TwoViews


def nt_xent(z1, z2, tau=0.2):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.t() / tau
    n = len(z1)
    sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target)


def worker_init(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


def main():
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    g = torch.Generator().manual_seed(3)

    i = np.arange(128)[:, None]
    base = np.sin(i * 0.37 + np.arange(20)[None] * (1 + i % 5) * 0.5)
    loader = DataLoader(TwoViews(base), batch_size=32, shuffle=True, num_workers=2,
                        worker_init_fn=worker_init, generator=g, drop_last=True)
    encoder = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16))
    projector = nn.Sequential(nn.ReLU(), nn.Linear(16, 8))
    opt = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=2e-3)
    for epoch in range(2):
        for a, b in loader:
            loss = nt_xent(projector(encoder(a)), projector(encoder(b)))
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: nt-xent {loss.item():.4f}")
    torch.save(encoder.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
