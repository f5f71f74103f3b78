import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from corpus import load
from vocab import Vocab

config = {"seed": 0, "emb": 12, "hidden": 16, "epochs": 3, "bs": 16, "lr": 0.01, "max_len": 8}


class Classifier(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.emb = nn.Embedding(n_words, config["emb"], padding_idx=0)
        self.gru = nn.GRU(config["emb"], config["hidden"], batch_first=True)
        self.out = nn.Linear(config["hidden"], 2)

    def forward(self, x):
        _, h = self.gru(self.emb(x))
        return self.out(h[-1])


def main():
    random.seed(config["seed"])
    np.random.seed(config["seed"])
    torch.manual_seed(config["seed"])

    rows = load()
    vocab = Vocab([t for t, _ in rows])
    x = torch.tensor([vocab.encode(t, config["max_len"]) for t, _ in rows])
    y = torch.tensor([l for _, l in rows])
    loader = DataLoader(TensorDataset(x, y), batch_size=config["bs"], shuffle=True)

    model = Classifier(len(vocab))
    optim = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        hits = 0
        for xb, yb in loader:
            out = model(xb)
            loss = nn.functional.cross_entropy(out, yb)
            optim.zero_grad()
            loss.backward()
            optim.step()
            hits += (out.argmax(-1) == yb).sum().item()
        print(f"[{epoch}] train acc {hits / len(y):.3f}")
    torch.save(model.state_dict(), "model.pt")


main()
