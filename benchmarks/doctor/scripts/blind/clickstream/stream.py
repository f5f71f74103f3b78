import random

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


class Sessions(IterableDataset):
    """Endless-ish stream; every worker produces its own share."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __iter__(self):
        info = get_worker_info()
        wid, workers = (info.id, info.num_workers) if info else (0, 1)
        rng = np.random.default_rng([self.seed, wid])
        for k in range(wid, self.n, workers):
            x = rng.normal(size=6) + np.sin(k)
            jitter = torch.rand(6) * 0.05 + random.random() * 0.01
            label = float(x[0] + 0.5 * x[3] > 0)
            yield torch.from_numpy(x.astype(np.float32)) + jitter, torch.tensor(label)


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2 ** 32
    np.random.seed(worker_seed)
    random.seed(worker_seed)
