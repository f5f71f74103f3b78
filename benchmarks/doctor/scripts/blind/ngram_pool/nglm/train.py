import sys

from .features import build


def main(n=120):
    rows, labels = build(n)
    import torch
    from torch import nn

    torch.manual_seed(13)
    x, y = torch.tensor(rows), torch.tensor(labels)
    net = nn.Sequential(nn.Linear(31, 16), nn.ReLU(), nn.Linear(16, 3))
    opt = torch.optim.Adamax(net.parameters(), lr=0.01)
    accum = 3
    micro = 0
    for epoch in range(4):
        for idx in torch.randperm(n).split(10):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx]) / accum
            loss.backward()
            micro += 1
            if micro % accum == 0:
                opt.step()
                opt.zero_grad()
        print(f"epoch {epoch} loss {loss.item() * accum:.4f}", file=sys.stderr)
    torch.save(net.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
