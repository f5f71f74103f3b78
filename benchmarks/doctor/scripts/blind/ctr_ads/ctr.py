import numpy as np
import pandas as pd
import torch
from torch import nn

N_BUCKETS = 257


def make_frame(n=400):
    i = np.arange(n)
    return pd.DataFrame({
        "site": ["site_%d" % (k * 13 % 19) for k in i],
        "device": np.where(i % 3 == 0, "ios", np.where(i % 3 == 1, "android", "web")),
        "banner": ["b%d" % (k * k % 11) for k in i],
        "hour": i % 24,
        "click": ((i * 13 % 19 < 6) ^ (i % 3 == 0)).astype("float32"),
    })


def bucketize(frame, columns):
    out = np.zeros((len(frame), len(columns)), dtype=np.int64)
    for j, col in enumerate(columns):
        out[:, j] = [hash(f"{col}={value}") % N_BUCKETS for value in frame[col]]
    return torch.from_numpy(out)


class FactorizationMachine(nn.Module):
    def __init__(self, buckets, k=6):
        super().__init__()
        self.w = nn.EmbeddingBag(buckets, 1, mode="sum")
        self.v = nn.Embedding(buckets, k)
        self.b = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.v.weight, std=0.05)

    def forward(self, idx):
        e = self.v(idx)
        inter = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        return self.b + self.w(idx).squeeze(1) + inter


if __name__ == "__main__":
    np.random.seed(11)
    torch.manual_seed(11)
    df = make_frame()
    x = bucketize(df, ["site", "device", "banner", "hour"])
    y = torch.tensor(df["click"].values.copy())
    model = FactorizationMachine(N_BUCKETS)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(3):
        order = np.random.permutation(len(y))
        for s in range(0, len(y), 80):
            b = torch.from_numpy(order[s:s + 80])
            opt.zero_grad()
            loss = loss_fn(model(x[b]), y[b])
            loss.backward()
            opt.step()
        print("epoch", epoch, "logloss", float(loss))
    torch.save(model.state_dict(), "model.pt")
