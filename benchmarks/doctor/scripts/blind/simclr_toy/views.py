import numpy as np
import torch
from torch.utils.data import Dataset


class TwoViews(Dataset):
    def __init__(self, base, sigma=0.1):
        self.base = base
        self.sigma = sigma

    def __len__(self):
        return len(self.base)

    def _augment(self, x, rng):
        x = x + rng.normal(0.0, self.sigma, size=x.shape)
        keep = rng.random(x.shape) > 0.1
        return (x * keep).astype(np.float32)

    def __getitem__(self, index):
        rng = np.random.default_rng()
        x = self.base[index]
        return torch.from_numpy(self._augment(x, rng)), torch.from_numpy(self._augment(x, rng))
