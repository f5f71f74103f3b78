import argparse
import random

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from dataset import SignalDataset

parser = argparse.ArgumentParser(description="cnn with loader workers")
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("-b", "--batch-size", default=16, type=int)
parser.add_argument("-j", "--workers", default=2, type=int)
parser.add_argument("--lr", default=0.01, type=float)
parser.add_argument("--seed", default=0, type=int)


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    )


def train_one_epoch(model, loader, criterion, optimizer, epoch):
    model.train()
    losses = []
    for it, (images, labels) in enumerate(loader):
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        print("\rEpoch %d %3d%% loss %.3f" % (epoch, 100 * (it + 1) // len(loader), loss.item()), end="")
    print()
    return sum(losses) / len(losses)


if __name__ == "__main__":
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    g = torch.Generator()
    g.manual_seed(args.seed)
    dataset = SignalDataset()
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        worker_init_fn=seed_worker,
        generator=g,
    )
    model = build_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        avg = train_one_epoch(model, loader, criterion, optimizer, epoch)
        print("epoch %d done, avg loss %.4f" % (epoch, avg))
    torch.save({"state_dict": model.state_dict(), "args": vars(args)}, "model.pt")
