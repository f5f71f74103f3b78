import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--iters", type=int, default=25)
parser.add_argument("--nz", type=int, default=4)
parser.add_argument("--manualSeed", type=int, default=999)
opt = parser.parse_args()
print("Random Seed: ", opt.manualSeed)
torch.manual_seed(opt.manualSeed)


class LatentSource:
    def __init__(self, nz):
        self.nz = nz
        self.rng = torch.Generator()
        self.rng.seed()

    def __call__(self, n):
        return torch.randn(n, self.nz, generator=self.rng)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


def real_batch(step, n=32):
    a = 2 * math.pi * (torch.arange(n) * 5 + step) / 8.0
    return torch.stack([a.cos(), a.sin()], 1) + 0.02 * torch.randn(n, 2)


netG = nn.Sequential(nn.Linear(opt.nz, 16), nn.ReLU(), nn.Linear(16, 2))
netD = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
netG.apply(weights_init)
netD.apply(weights_init)
latent = LatentSource(opt.nz)
bce = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))

for it in range(opt.iters):
    real = real_batch(it)
    fake = netG(latent(32))
    optD.zero_grad()
    lossD = bce(netD(real), torch.ones(32, 1)) + bce(netD(fake.detach()), torch.zeros(32, 1))
    lossD.backward()
    optD.step()

    optG.zero_grad()
    lossG = bce(netD(fake), torch.ones(32, 1))
    lossG.backward()
    optG.step()
    if it % 5 == 0:
        print(f"[{it}/{opt.iters}] Loss_D: {lossD.item():.4f} Loss_G: {lossG.item():.4f}")

torch.save({"G." + k: v for k, v in netG.state_dict().items()} | {"D." + k: v for k, v in netD.state_dict().items()}, "model.pt")
