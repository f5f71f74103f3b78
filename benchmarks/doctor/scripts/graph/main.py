import numpy as np
import torch
import torch.nn as nn


def random_graph(n=300, e=30000, feats=8, seed=21):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, size=(2, e))
    x = rng.normal(size=(n, feats)).astype("float32")
    deg = np.bincount(edges[1], minlength=n)
    y = (deg > np.median(deg)).astype("int64")
    return torch.from_numpy(edges), torch.from_numpy(x), torch.from_numpy(y)


class GraphConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.lin = nn.Linear(fin, fout)
        self.self_lin = nn.Linear(fin, fout)

    def forward(self, x, edge_index):
        src, dst = edge_index
        msg = self.lin(x).index_select(0, src)
        out = torch.zeros(x.size(0), msg.size(1), device=x.device, dtype=msg.dtype)
        out.index_add_(0, dst, msg)
        return out + self.self_lin(x)


class GNN(nn.Module):
    def __init__(self, feats):
        super().__init__()
        self.conv1 = GraphConv(feats, 16)
        self.conv2 = GraphConv(16, 2)
        self.register_buffer("mean", torch.zeros(feats))

    def forward(self, x, edge_index):
        x = x - self.mean
        x = torch.relu(self.conv1(x, edge_index))
        return self.conv2(x, edge_index)


def class_weights(y):
    counts = torch.bincount(y).float()
    return counts.sum() / counts


def main():
    torch.manual_seed(8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    edge_index, x, y = random_graph()
    edge_index, x, y = edge_index.to(device), x.to(device), y.to(device)
    model = GNN(x.size(1)).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    weight = class_weights(y)
    for epoch in range(10):
        model.train()
        opt.zero_grad()
        out = model(x, edge_index)
        loss = nn.functional.cross_entropy(out, y, weight=weight)
        loss.backward()
        opt.step()
        acc = (out.argmax(1) == y).float().mean().item()
        print(f"Epoch: {epoch:03d}, Loss: {loss.item():.4f}, Acc: {acc:.4f}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
