import math
import random

import torch
from torch.utils.data import Dataset


class LoadCurve(Dataset):
    def __init__(self, length=260, window=24, train=True):
        t = torch.arange(length, dtype=torch.float32)
        self.series = torch.sin(t * 2 * math.pi / 24) + 0.3 * torch.cos(t / 9) + 0.001 * t
        self.window = window
        self.train = train

    def __len__(self):
        return len(self.series) - self.window - 1

    def __getitem__(self, i):
        x = self.series[i:i + self.window].clone()
        y = self.series[i + self.window]
        if self.train:
            scale = random.uniform(0.95, 1.05)
            x, y = x * scale, y * scale
        return x.unsqueeze(-1), y
