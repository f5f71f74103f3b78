import argparse
import glob
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split


class FolderDataset(Dataset):
    def __init__(self, root):
        self.classes = sorted(os.listdir(root))
        self.samples = []
        for label, name in enumerate(self.classes):
            folder = os.path.join(root, name)
            for fname in sorted(os.listdir(folder)):
                self.samples.append((os.path.join(folder, fname), label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        return torch.from_numpy(np.load(path)), label


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data")
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(123)

    full = FolderDataset(args.data)
    n_val = len(full) // 5
    train, val = random_split(full, [len(full) - n_val, n_val])
    loader = DataLoader(train, batch_size=12, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 64, len(full.classes)))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.02)
    for ep in range(args.epochs):
        tot = 0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        with torch.no_grad():
            ok = sum(int(model(x[None]).argmax() == y) for x, y in val)
        print("epoch", ep, "loss", tot / len(loader), "val acc", ok / n_val)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
