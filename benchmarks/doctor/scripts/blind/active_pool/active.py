import torch
from torch import nn

from oracle import universe
from pool import LabelStore

CONFIG = dict(rounds=3, steps=8, query=6, lr=0.02, seed=100)


def fit(model, x, y):
    opt = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    for _ in range(CONFIG["steps"]):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


@torch.no_grad()
def most_uncertain(model, x, taken, k):
    p = model(x).softmax(-1)
    ent = -(p * p.clamp_min(1e-9).log()).sum(-1)
    ent[taken] = -1
    return ent.topk(k).indices.tolist()


def main():
    torch.manual_seed(CONFIG["seed"])
    x, y = universe()
    store = LabelStore()
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
    for r in range(CONFIG["rounds"]):
        loss = fit(model, x[store.indices], y[store.indices])
        acc = (model(x).argmax(1) == y).float().mean().item()
        print(f"round {r}: loss {loss:.4f} acc {acc:.3f}")
        store.add(most_uncertain(model, x, store.indices, CONFIG["query"]))
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
