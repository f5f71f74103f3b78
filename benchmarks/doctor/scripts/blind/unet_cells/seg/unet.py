import torch
from torch import nn


def double(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.Conv2d(cout, cout, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, classes=3, w=6):
        super().__init__()
        self.d1, self.d2 = double(1, w), double(w, 2 * w)
        self.up = nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.u1 = double(2 * w, w)
        self.out = nn.Conv2d(w, classes, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        return self.out(self.u1(torch.cat([a, self.up(b)], 1)))
