import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from pairs import PairDataset, PairSampler

monitor_rng = np.random.default_rng()


def embedder():
    return nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 6))


def contrastive(za, zb, same, margin=1.0):
    d = (za - zb).pow(2).sum(1).add(1e-9).sqrt()
    return (same * d.pow(2) + (1 - same) * torch.relu(margin - d).pow(2)).mean()


def main():
    torch.manual_seed(500)
    ds = PairDataset()
    loader = DataLoader(ds, sampler=PairSampler(ds, 120), batch_size=24)
    net = embedder()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(3):
        for a, b, same in loader:
            loss = contrastive(net(a), net(b), same)
            opt.zero_grad()
            loss.backward()
            opt.step()
        probe = monitor_rng.choice(len(ds), size=10, replace=False)
        with torch.no_grad():
            norm = net(ds.x[torch.from_numpy(probe)]).norm(dim=1).mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} mean norm of 10 random embeddings {norm:.3f}")
    torch.save(net.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
