"""Skip-gram with negative sampling on a toy corpus."""
import random
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(42)
torch.manual_seed(42)

text = ("the king rules the land and the queen rules the court while the farmer works the field "
        "and the baker bakes the bread for the king and the queen and the farmer ") * 3
tokens = text.split()
counts = Counter(tokens)
vocab = [w for w, _ in counts.most_common()]
w2i = {w: i for i, w in enumerate(vocab)}
freq = np.array([counts[w] for w in vocab], dtype=np.float64) ** 0.75
unigram = freq / freq.sum()

WINDOW = 2
pairs = []
for i, w in enumerate(tokens):
    for j in range(max(0, i - WINDOW), min(len(tokens), i + WINDOW + 1)):
        if j != i:
            pairs.append((w2i[w], w2i[tokens[j]]))
random.shuffle(pairs)


class SkipGram(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.center = nn.Embedding(v, d)
        self.context = nn.Embedding(v, d)
        nn.init.uniform_(self.center.weight, -0.5 / d, 0.5 / d)
        nn.init.zeros_(self.context.weight)

    def forward(self, c, pos, neg):
        e = self.center(c)
        p = (e * self.context(pos)).sum(-1)
        n = torch.bmm(self.context(neg), e.unsqueeze(-1)).squeeze(-1)
        return -(F.logsigmoid(p) + F.logsigmoid(-n).sum(-1)).mean()


def negatives(batch, k=4):
    draw = np.random.choice(len(vocab), size=(batch, k), p=unigram)
    return torch.from_numpy(draw)


model = SkipGram(len(vocab), 10)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
BS = 64
for epoch in range(3):
    tot = 0.0
    for s in range(0, len(pairs), BS):
        b = torch.tensor(pairs[s:s + BS])
        loss = model(b[:, 0], b[:, 1], negatives(len(b)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    print("epoch", epoch, "loss", tot)
torch.save(model.state_dict(), "model.pt")
