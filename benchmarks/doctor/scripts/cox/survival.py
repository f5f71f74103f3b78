"""DeepSurv-like training: Cox partial likelihood with the risk set as a running sum."""
import numpy as np
import torch
import torch.nn as nn


def simulate(n, d=10, seed=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype("float32")
    t = rng.exponential(np.exp(-0.5 * x[:, 0])).astype("float32")
    e = (rng.random(n) < 0.7).astype("float32")
    order = np.argsort(-t)
    return (torch.from_numpy(a[order]) for a in (x, t, e))


def cox_loss(risk, event):
    """risk and event are sorted by decreasing time."""
    log_cum = torch.cumsum(risk.exp(), 0).log()
    return -((risk - log_cum) * event).sum() / event.sum()


def main(n=300_000, steps=8):
    torch.manual_seed(77)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, t, e = simulate(n)
    x, e = x.to(device), e.to(device)
    net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for s in range(steps):
        risk = net(x).squeeze(1)
        loss = cox_loss(risk, e)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, float(loss))
    torch.save(net.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
