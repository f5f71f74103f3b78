import argparse

from prepare import build_matrix


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--docs", type=int, default=90)
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def main():
    args = parse()
    rows, labels = build_matrix(args.docs, args.workers)

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(args.seed)
    ds = TensorDataset(torch.tensor(rows), torch.tensor(labels))
    loader = DataLoader(ds, batch_size=15, shuffle=True, generator=torch.Generator().manual_seed(args.seed))
    model = nn.Sequential(nn.Linear(40, 20), nn.GELU(), nn.Linear(20, 3))
    opt = torch.optim.NAdam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, "loss", round(loss.item(), 4))
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
