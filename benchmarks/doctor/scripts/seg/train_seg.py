import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False


class Blobs(Dataset):
    def __init__(self, n=64, size=48):
        self.n, self.size = n, size
        self.yy, self.xx = np.mgrid[:size, :size]

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        r = np.random.RandomState(idx)
        cy, cx = r.randint(8, self.size - 8, 2)
        rad = r.randint(4, 12)
        mask = ((self.yy - cy) ** 2 + (self.xx - cx) ** 2 < rad**2).astype(np.float32)
        img = mask[None].repeat(3, 0) + 0.3 * r.randn(3, self.size, self.size)
        return img.astype(np.float32), mask[None]


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class SmallUNet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.enc1 = block(3, w)
        self.enc2 = block(w, 2 * w)
        self.enc3 = block(2 * w, 4 * w)
        self.dec2 = block(6 * w, 2 * w)
        self.dec1 = block(3 * w, w)
        self.head = nn.Conv2d(w, 1, 1)
        self.context = nn.Linear(4 * w, 4 * w)

    def upsample(self, x, like):
        return F.interpolate(x, size=like.shape[-2:], mode="nearest")

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        e3 = self.enc3(F.max_pool2d(e2, 2))
        pooled = e3.mean(dim=(2, 3))
        e3 = e3 * torch.sigmoid(self.context(pooled))[:, :, None, None]
        d2 = self.dec2(torch.cat([self.upsample(e3, e2), e2], 1))
        d1 = self.dec1(torch.cat([self.upsample(d2, e1), e1], 1))
        return self.head(d1)


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum(dim=(1, 2, 3))
    return 1 - ((2 * inter + eps) / (p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + eps)).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--gpu", type=int, default=0)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.cuda.manual_seed_all(args.seed)
    device = torch.device("cuda", args.gpu) if torch.cuda.is_available() else torch.device("cpu")
    loader = DataLoader(Blobs(), batch_size=8, shuffle=True, num_workers=0, pin_memory=device.type == "cuda")
    model = SmallUNet().to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        for img, mask in loader:
            img, mask = img.to(device, non_blocking=True), mask.to(device, non_blocking=True)
            logits = model(img)
            loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
