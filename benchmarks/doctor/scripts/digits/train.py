"""Small MLP on synthetic 8x8 digits."""
import argparse
import csv
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Net(nn.Module):
    def __init__(self, hidden=128, dropout=0.2):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.drop(x)
        return self.out(x)


def make_data(n, seed=1234):
    rng = np.random.RandomState(seed)
    centers = rng.randn(10, 64) * 2
    y = rng.randint(0, 10, size=n)
    x = centers[y] + rng.randn(n, 64)
    return x.astype(np.float32), y.astype(np.int64)


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            pred = model(x).argmax(1)
            correct += (pred == y).sum().item()
            total += len(y)
    return correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--log", default="log.csv")
    args = parser.parse_args()
    print(args)

    set_seed(args.seed)

    ids = ["patient%03d" % i for i in range(400)]
    x, y = make_data(len(ids))
    train_idx = [i for i, name in enumerate(ids) if i % 5 != 0]
    val_idx = [i for i, name in enumerate(ids) if i % 5 == 0]
    mean, std = x[train_idx].mean(0), x[train_idx].std(0)
    x = (x - mean) / std

    train_set = TensorDataset(torch.from_numpy(x[train_idx]), torch.from_numpy(y[train_idx]))
    val_set = TensorDataset(torch.from_numpy(x[val_idx]), torch.from_numpy(y[val_idx]))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)

    model = Net(args.hidden)
    print("params:", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)

    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        start = time.time()
        running = 0.0
        for i, (data, target) in enumerate(train_loader):
            optimizer.zero_grad()
            output = model(data)
            loss = F.cross_entropy(output, target)
            loss.backward()
            optimizer.step()
            running += loss.item()
            if i % 2 == 0:
                print(f"epoch {epoch} [{i}/{len(train_loader)}] loss {loss.item():.4f}")
        scheduler.step()
        acc = evaluate(model, val_loader)
        print(f"epoch {epoch}: loss {running / len(train_loader):.4f} acc {acc:.3f} ({time.time() - start:.1f}s)")
        with open(args.log, "a", newline="") as f:
            csv.writer(f).writerow([epoch, running, acc])
        if acc >= best:
            best = acc
            torch.save(model.state_dict(), "best.pt")
    torch.save(model.state_dict(), "model.pt")
    print("best acc", best)


if __name__ == "__main__":
    main()
