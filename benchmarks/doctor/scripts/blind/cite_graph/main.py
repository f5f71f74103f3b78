import torch

from gnn import GNN
from graph import build, minibatches


def main(epochs=3, batch=30, seed=9):
    torch.manual_seed(seed)
    papers = build()
    x = torch.tensor([p.features for p in papers])
    y = torch.tensor([p.topic for p in papers])
    src = torch.tensor([p.index for p in papers for _ in p.cites])
    dst = torch.tensor([q.index for p in papers for q in p.cites])
    model = GNN(8, 16, 3)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(epochs):
        for idx in minibatches(papers, batch):
            out = model(x, src, dst)
            loss = nn_loss(out[idx], y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = (model(x, src, dst).argmax(1) == y).float().mean().item()
        print(f"epoch {epoch:02d} acc {acc:.3f}")
    torch.save(model.state_dict(), "model.pt")


nn_loss = torch.nn.functional.cross_entropy

if __name__ == "__main__":
    main()
