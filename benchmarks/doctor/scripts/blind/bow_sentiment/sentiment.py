from dataclasses import dataclass

import torch
from torch import nn

from text import in_validation, lookup_cost, reviews, vocabulary


@dataclass(frozen=True)
class HP:
    seed: int = 90
    epochs: int = 4
    batch: int = 20
    lr: float = 0.02
    dropout: float = 0.4


class BoW(nn.Module):
    def __init__(self, vocab, hp):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, 12, mode="mean")
        self.drop = nn.Dropout(hp.dropout)
        self.fc = nn.Linear(12, 1)

    def forward(self, ids):
        return self.fc(self.drop(self.bag(ids))).squeeze(-1)


def main(hp=HP()):
    torch.manual_seed(hp.seed)
    rows = list(reviews())
    print("bucket spread", lookup_cost([t for t, _ in rows]))
    vocab = vocabulary(t for t, _ in rows)
    split = {True: [], False: []}
    for t, l in rows:
        split[in_validation(t)].append(([vocab[w] for w in t.split()], l))
    xs, ys = (torch.tensor(v) for v in zip(*split[False]))
    model = BoW(len(vocab), hp)
    opt = torch.optim.Adam(model.parameters(), lr=hp.lr)
    for epoch in range(hp.epochs):
        for b in torch.randperm(len(xs)).split(hp.batch):
            loss = nn.functional.binary_cross_entropy_with_logits(model(xs[b]), ys[b].float())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
