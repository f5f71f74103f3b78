from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch


class PrefetchLoader:
    """Prepares augmented batches in background threads, yields them in order."""

    def __init__(self, data, batch_size, seed, threads=3):
        self.data = data
        self.batch_size = batch_size
        self.threads = threads
        self.rng = np.random.default_rng(seed)

    def _prepare(self, start):
        x = self.data[start:start + self.batch_size]
        big = x
        for _ in range(25):
            big = np.tanh(big @ np.eye(x.shape[1]))
        noise = self.rng.normal(0, 0.05, size=x.shape)
        shift = self.rng.uniform(-0.1, 0.1, size=(len(x), 1))
        return torch.from_numpy((x + noise + shift).astype(np.float32))

    def __iter__(self):
        starts = range(0, len(self.data), self.batch_size)
        with ThreadPoolExecutor(max_workers=self.threads) as ex:
            yield from ex.map(self._prepare, starts)
