import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

from loader import PrefetchLoader


class VAE(nn.Module):
    def __init__(self, d=40, h=32, z=4):
        super().__init__()
        self.enc = nn.Linear(d, h)
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)
        self.dec = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, d))

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo(x, recon, mu, logvar):
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1)
    return (F.mse_loss(recon, x, reduction="none").sum(1) + kl).mean()


def main(seed=4):
    torch.manual_seed(seed)
    i = np.arange(1600)[:, None]
    data = np.sin(i * 0.017 * (1 + np.arange(40)[None] % 6))
    loader = PrefetchLoader(data, 40, seed)
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        total = 0.0
        for x in loader:
            loss = elbo(x, *model(x))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"====> Epoch: {epoch} Average loss: {total / 40:.4f}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
