import torch

from .config import TrainConfig
from .layers import MoE
from .runtime import seed_everything


def synthetic(n, dim):
    i = torch.arange(n, dtype=torch.float32).unsqueeze(1)
    x = torch.sin(i * (1.0 + 0.13 * torch.arange(dim)))
    y = torch.where(x[:, 0] > 0, x[:, 1] * 2, x[:, 2].pow(2))
    return x, y


def main():
    cfg = TrainConfig()
    seed_everything(cfg.seed)
    x, y = synthetic(480, cfg.model.dim)
    model = MoE(cfg.model)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for step in range(cfg.steps):
        lo = step * cfg.batch % len(x)
        xb, yb = x[lo:lo + cfg.batch], y[lo:lo + cfg.batch]
        pred, gates = model(xb)
        load = gates.sum(0)
        loss = (pred - yb).pow(2).mean() + 0.01 * (load.std() / load.mean()) ** 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"final loss {loss.item():.4f}  expert load {[round(v, 1) for v in load.tolist()]}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
