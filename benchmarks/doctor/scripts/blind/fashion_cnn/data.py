import torch
from torch.utils.data import Dataset


class Patterns(Dataset):
    """16x16 sinusoidal gratings in four orientations."""

    def __init__(self, n=160, size=16):
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        waves = [xx, yy, xx + yy, xx - yy]
        self.images, self.labels = [], []
        for i in range(n):
            c = i % 4
            img = torch.sin(waves[c].float() * (0.5 + 0.01 * (i % 17)) + i * 0.3)
            self.images.append(img.unsqueeze(0))
            self.labels.append(c)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]
