import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from dataset import LoadCurve


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1]).squeeze(-1)


def seed_all(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def main(args):
    seed_all(args.seed)
    loader = DataLoader(LoadCurve(), batch_size=32, shuffle=True, drop_last=True)
    net = Forecaster(args.hidden)
    opt = torch.optim.RMSprop(net.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.7)
    for epoch in range(args.epochs):
        run = 0.0
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.smooth_l1_loss(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            run += loss.item()
        sched.step()
        print(f"epoch {epoch + 1}: {run / len(loader):.5f}")
    torch.save(net.state_dict(), "model.pt")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--hidden", type=int, default=12)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=5)
    main(ap.parse_args())
