import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--log-interval", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(args.seed)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(49, 32)
        self.fc21 = nn.Linear(32, 4)
        self.fc22 = nn.Linear(32, 4)
        self.fc3 = nn.Linear(4, 32)
        self.fc4 = nn.Linear(32, 49)
        self.register_buffer("usage", torch.zeros(4))

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        with torch.no_grad():
            self.usage.mul_(0.9).add_(z.abs().mean(0), alpha=0.1)
        return self.decode(z), mu, logvar


def bars(n):
    rs = np.random.RandomState(4)
    img = np.zeros((n, 7, 7), np.float32)
    for k in range(n):
        if k % 2:
            img[k, rs.randint(7)] = 1
        else:
            img[k, :, rs.randint(7)] = 1
    return torch.from_numpy(img.reshape(n, 49))


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train_data = bars(96)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch):
    model.train()
    for batch_idx, data in enumerate(train_data.split(32)):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print("Train Epoch: {} [{}]\tLoss: {:.6f}".format(epoch, batch_idx, loss.item() / len(data)))


for epoch in range(1, args.epochs + 1):
    train(epoch)
torch.save(model.state_dict(), "model.pt")
