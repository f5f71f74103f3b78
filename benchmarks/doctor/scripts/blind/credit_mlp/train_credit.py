"""Credit default MLP with early stopping on a hold-out split."""
from copy import deepcopy
from dataclasses import dataclass

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


@dataclass
class Config:
    seed: int = 2023
    hidden: int = 24
    lr: float = 5e-3
    batch: int = 40
    max_epochs: int = 8
    patience: int = 2


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.state = patience, float("inf"), 0, None

    def step(self, value, model):
        if value < self.best - 1e-4:
            self.best, self.bad, self.state = value, 0, deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def load(cfg):
    X, y = make_classification(n_samples=320, n_features=12, n_informative=6, random_state=cfg.seed)
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.25, stratify=y)
    scaler = StandardScaler().fit(X_tr)
    t = lambda a: torch.as_tensor(a, dtype=torch.float32)
    return t(scaler.transform(X_tr)), t(y_tr), t(scaler.transform(X_va)), t(y_va)


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    X_tr, y_tr, X_va, y_va = load(cfg)
    model = nn.Sequential(nn.Linear(12, cfg.hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(cfg.hidden, 1))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    crit = nn.BCEWithLogitsLoss()
    stopper = EarlyStopping(cfg.patience)
    for epoch in range(cfg.max_epochs):
        model.train()
        perm = torch.randperm(len(X_tr))
        for idx in perm.split(cfg.batch):
            opt.zero_grad()
            loss = crit(model(X_tr[idx]).squeeze(-1), y_tr[idx])
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            val = crit(model(X_va).squeeze(-1), y_va).item()
        print(f"epoch={epoch} val_loss={val:.4f}")
        if stopper.step(val, model):
            break
    model.load_state_dict(stopper.state)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
