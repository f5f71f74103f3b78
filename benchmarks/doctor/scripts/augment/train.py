import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

import transforms as T

SEED = 3407
EPOCHS = 2
BATCH = 16


class Shapes(Dataset):
    def __init__(self, n, transform=None):
        rng = np.random.RandomState(0)
        self.labels = rng.randint(0, 3, n)
        self.images = rng.rand(n, 12, 12)
        for img, label in zip(self.images, self.labels):
            if label == 0:
                img[3:9, 3:9] += 1
            elif label == 1:
                img[:, 5:7] += 1
            else:
                img[5:7, :] += 1
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transform is not None:
            img = self.transform(img)
        return torch.from_numpy(img)[None], int(self.labels[i])


def mixup(x, y, alpha=0.2):
    lam = np.random.beta(alpha, alpha)
    perm = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(8 * 4 * 4, 3)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

train_tf = T.Compose([T.RandomFlip(), T.RandomCrop(12), T.GaussianNoise(0.05), T.ToFloat()])
train_ds = Shapes(96, train_tf)
loader = DataLoader(train_ds, batch_size=BATCH, shuffle=True, drop_last=True)

net = SmallCNN()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
ce = nn.CrossEntropyLoss()

history = []
for epoch in range(EPOCHS):
    for x, y in loader:
        x, ya, yb, lam = mixup(x, y)
        logits = net(x)
        loss = lam * ce(logits, ya) + (1 - lam) * ce(logits, yb)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        history.append(float(loss.detach()))
    print(f"[{epoch + 1}/{EPOCHS}] loss={np.mean(history[-len(loader):]):.4f}")

torch.save(net.state_dict(), "model.pt")
