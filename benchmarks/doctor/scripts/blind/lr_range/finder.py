import copy
import math
import time

import torch


class LRFinder:
    """Try a few learning rates for a handful of steps and rank them by progress per second."""

    def __init__(self, model, loss_fn, candidates, steps=4):
        self.model, self.loss_fn = model, loss_fn
        self.candidates, self.steps = candidates, steps

    def probe(self, lr, x, y):
        net = copy.deepcopy(self.model)
        opt = torch.optim.SGD(net.parameters(), lr=lr)
        first = None
        start = time.perf_counter()
        for _ in range(self.steps):
            loss = self.loss_fn(net(x), y)
            first = loss.item() if first is None else first
            opt.zero_grad()
            loss.backward()
            opt.step()
        elapsed = time.perf_counter() - start
        return max(first - loss.item(), 1e-8) / elapsed

    def suggest(self, x, y):
        scores = [self.probe(lr, x, y) for lr in self.candidates]
        total = sum(scores)
        log_lr = sum(s / total * math.log(lr) for s, lr in zip(scores, self.candidates))
        return math.exp(log_lr)
