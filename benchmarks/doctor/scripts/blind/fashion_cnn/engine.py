import random

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Engine:
    def __init__(self, model, dataset, args):
        set_seed(args.seed)
        self.model = model
        self.args = args
        self.loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
        self.opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    def run_epoch(self, epoch):
        self.model.train()
        total, correct, seen = 0.0, 0, 0
        for x, y in self.loader:
            logits = self.model(x)
            loss = F.cross_entropy(logits, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(y)
            correct += (logits.argmax(1) == y).sum().item()
            seen += len(y)
        print(f"epoch {epoch} loss {total / seen:.4f} acc {correct / seen:.3f}")

    def fit(self):
        for epoch in range(self.args.epochs):
            self.run_epoch(epoch)
