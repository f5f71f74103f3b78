"""5-fold cross validation on the wine data, keeps the best fold's network."""
import logging
import random
import uuid
from datetime import datetime

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

RUN_ID = uuid.uuid4().hex[:8]
ADJECTIVES = ["quiet", "brave", "amber", "lucky", "cold"]
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger(RUN_ID)


def seed_for(fold):
    return 1000 + fold


def train_fold(fold, X, y, tr, va):
    torch.manual_seed(seed_for(fold))
    sc = StandardScaler().fit(X[tr])
    xt, xv = (torch.tensor(sc.transform(X[i]), dtype=torch.float32) for i in (tr, va))
    yt, yv = torch.tensor(y[tr]), torch.tensor(y[va])
    net = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    net.train()
    for epoch in range(3):
        for b in torch.randperm(len(xt)).split(48):
            opt.zero_grad()
            nn.functional.cross_entropy(net(xt[b]), yt[b]).backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(net(xv), yv).item()
    return loss, net


def main():
    name = random.choice(ADJECTIVES) + "-" + str(random.randint(100, 999))
    log.info("run %s started %s", name, datetime.now().isoformat())
    X, y = load_wine(return_X_y=True)
    folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
    best = None
    for k, (tr, va) in enumerate(folds.split(X, y)):
        loss, net = train_fold(k, X, y, tr, va)
        log.info("%s fold %d val %.4f", name, k, loss)
        if best is None or loss < best[0]:
            best = (loss, net)
    torch.save(best[1].state_dict(), "model.pt")


if __name__ == "__main__":
    main()
