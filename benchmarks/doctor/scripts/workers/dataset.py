import numpy as np
import torch
from torch.utils.data import Dataset


class SignalDataset(Dataset):
    """Fake one-channel images, made on the fly from the index."""

    def __init__(self, n=96, size=16, train=True):
        self.n = n
        self.size = size
        self.train = train

    def __len__(self):
        return self.n

    def _load(self, idx):
        r = np.random.RandomState(idx)
        label = idx % 4
        img = r.randn(self.size, self.size).astype(np.float32) * 0.3
        img[label * 4 : label * 4 + 4] += 1.0
        return img, label

    def __getitem__(self, idx):
        img, label = self._load(idx)
        if self.train:
            if np.random.rand() < 0.5:
                img = img[:, ::-1].copy()
            img = img + np.random.normal(0, 0.05, img.shape).astype(np.float32)
        return torch.from_numpy(img).unsqueeze(0), label
