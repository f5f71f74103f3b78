import argparse
import logging
import random
import sys

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

from corpus import Vocab, sentences

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
log = logging.getLogger("lm")


class LSTMModel(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, num_layers=2, batch_first=True, dropout=0.1)
        self.proj = nn.Linear(dim, vocab)

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.proj(h)


def batches(data, size):
    random.shuffle(data)
    for i in range(0, len(data) - size + 1, size):
        chunk = [torch.tensor(s) for s in data[i : i + size]]
        yield pad_sequence(chunk, batch_first=True)


def split(lines):
    train, valid = [], []
    for n, line in enumerate(lines):
        (valid if n % 10 == 0 else train).append(line)
    return train, valid


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--max-steps", type=int, default=8)
    ap.add_argument("--batch", type=int, default=24)
    ap.add_argument("--seed", type=int, default=13)
    a = ap.parse_args(argv)

    random.seed(a.seed)
    torch.manual_seed(a.seed)
    lines = sentences()
    vocab = Vocab(w for line in lines for w in line.split())
    train, valid = split(lines)
    data = [vocab.encode(s) for s in train]
    log.info("vocab %d, %d train / %d valid", len(vocab), len(train), len(valid))

    model = LSTMModel(len(vocab))
    opt = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss(ignore_index=0)
    step = 0
    while step < a.max_steps:
        for x in batches(data, a.batch):
            out = model(x[:, :-1])
            loss = loss_fn(out.flatten(0, 1), x[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            step += 1
            log.info("step %d ppl %.2f", step, loss.exp().item())
            if step >= a.max_steps:
                break
    model.eval()
    with torch.no_grad():
        v = pad_sequence([torch.tensor(vocab.encode(s)) for s in valid], batch_first=True)
        log.info("valid %.4f", loss_fn(model(v[:, :-1]).flatten(0, 1), v[:, 1:].flatten()).item())
    torch.save({"vocab": vocab.itos, "model": model.state_dict()}, "model.pt")


if __name__ == "__main__":
    main()
