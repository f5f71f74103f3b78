"""A training script as people write it, after PyTorch's MNIST example, with drawn digits.

The page docs/how-to/seed-free-script.md shows which lines of it change.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(8 * 6 * 6, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = self.dropout2(F.relu(self.fc1(torch.flatten(x, 1))))
        return F.log_softmax(self.fc2(x), dim=1)


def draw_digits(count):
    """Pictures (count, 1, 16, 16) of bars and rings for ten classes, and the classes."""
    steps = torch.arange(16.0)
    rows, columns = torch.meshgrid(steps, steps, indexing="ij")
    numbers = torch.arange(count)
    waves = [
        torch.sin(rows * (1 + n % 10) / 5 + n / 7) * torch.cos(columns * (1 + n % 3) / 4 + n)
        for n in numbers
    ]
    return torch.utils.data.TensorDataset(torch.stack(waves)[:, None], numbers % 10)


def train(model, device, train_loader, optimizer):
    model.train()
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cpu")
    train_kwargs = {"batch_size": args.batch_size, "num_workers": args.workers, "shuffle": True}

    dataset1 = draw_digits(80)
    train_loader = torch.utils.data.DataLoader(dataset1, **train_kwargs)

    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for _ in range(args.epochs):
        train(model, device, train_loader, optimizer)
        scheduler.step()
    print(torch.cat([p.detach().flatten() for p in model.parameters()]).double().sum().item().hex())


if __name__ == "__main__":
    main()
