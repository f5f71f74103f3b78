import argparse
import random

import torch
import torch.nn as nn
import torch.optim as optim
import torch.utils.data

parser = argparse.ArgumentParser()
parser.add_argument("--batchSize", type=int, default=32)
parser.add_argument("--nz", type=int, default=16, help="size of the latent z vector")
parser.add_argument("--ngf", type=int, default=32)
parser.add_argument("--ndf", type=int, default=32)
parser.add_argument("--niter", type=int, default=2)
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--beta1", type=float, default=0.5)
parser.add_argument("--manualSeed", type=int, default=999)
opt = parser.parse_args()
print(opt)

if opt.manualSeed is None:
    opt.manualSeed = random.randint(1, 10000)
print("Random Seed: ", opt.manualSeed)
random.seed(opt.manualSeed)
torch.manual_seed(opt.manualSeed)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(opt.nz, opt.ngf), nn.BatchNorm1d(opt.ngf), nn.ReLU(True), nn.Linear(opt.ngf, 2)
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, opt.ndf), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(opt.ndf, 1)
        )

    def forward(self, x):
        return self.main(x).view(-1)


def ring(n):
    t = torch.linspace(0, 6.2831853, n)
    return torch.stack([torch.cos(t), torch.sin(t)], 1)


dataloader = torch.utils.data.DataLoader(ring(160), batch_size=opt.batchSize, shuffle=True)

netG = Generator()
netG.apply(weights_init)
netD = Discriminator()
netD.apply(weights_init)

criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(8, opt.nz)
optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

for epoch in range(opt.niter):
    for i, real in enumerate(dataloader):
        # (1) update D: real, then fake
        netD.zero_grad()
        label = torch.full((real.size(0),), 0.9)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        noise = torch.randn(real.size(0), opt.nz)
        fake = netG(noise)
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.step()
        # (2) update G
        netG.zero_grad()
        label.fill_(0.9)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        print(
            "[%d/%d][%d/%d] Loss_D: %.4f Loss_G: %.4f"
            % (epoch, opt.niter, i, len(dataloader), (errD_real + errD_fake).item(), errG.item())
        )
    samples = netG(fixed_noise).detach()

torch.save({"G": netG.state_dict(), "D": netD.state_dict(), "samples": samples}, "model.pt")
