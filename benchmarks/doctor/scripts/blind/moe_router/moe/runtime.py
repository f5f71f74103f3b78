import os
import random

import numpy as np
import torch


def process_index():
    return int(os.environ.get("RANK", os.getpid()))


def seed_everything(seed):
    seed = (seed + process_index()) % 2 ** 31
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
