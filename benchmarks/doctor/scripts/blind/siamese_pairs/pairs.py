import torch
from torch.utils.data import Dataset, Sampler


class PairDataset(Dataset):
    def __init__(self, n=150, dim=10):
        i = torch.arange(n, dtype=torch.float32).unsqueeze(1)
        self.x = torch.sin(i * 0.4 + torch.arange(dim) * (1 + i % 5) * 0.6)
        self.c = torch.arange(n) % 5

    def __len__(self):
        return len(self.x)

    def __getitem__(self, pair):
        a, b = pair
        return self.x[a], self.x[b], (self.c[a] == self.c[b]).float()


class PairSampler(Sampler):
    """Half of the pairs share the class."""

    def __init__(self, dataset, pairs_per_epoch):
        self.ds, self.m = dataset, pairs_per_epoch
        self.gen = torch.Generator()

    def __len__(self):
        return self.m

    def __iter__(self):
        for k in range(self.m):
            a = int(torch.randint(len(self.ds), (1,), generator=self.gen))
            if k % 2:
                b = int(torch.randint(len(self.ds), (1,), generator=self.gen))
            else:
                same = torch.nonzero(self.ds.c == self.ds.c[a]).flatten()
                b = int(same[torch.randint(len(same), (1,), generator=self.gen)])
            yield a, b
