import random
import time

from torch.utils.data import Sampler


class BlockShuffleSampler(Sampler):
    """Shuffles blocks of neighbouring samples, keeps the order inside a block."""

    def __init__(self, n, block=4):
        self.n, self.block = n, block
        self.rng = random.Random(time.time())

    def __len__(self):
        return self.n

    def __iter__(self):
        blocks = [list(range(s, min(s + self.block, self.n))) for s in range(0, self.n, self.block)]
        self.rng.shuffle(blocks)
        for b in blocks:
            yield from b
