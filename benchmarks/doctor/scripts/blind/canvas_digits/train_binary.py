import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from render import make_set
from ste import HardSign


class BinaryNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(400, 32)
        self.norm = nn.LayerNorm(32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        return self.fc2(HardSign.apply(self.norm(self.fc1(x.flatten(1)))))


np.random.seed(77)
torch.manual_seed(77)
images, labels = make_set()
x = torch.from_numpy(np.stack(images)).float() / 255.0
y = torch.tensor(labels)
net = BinaryNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    for idx in torch.randperm(len(x)).split(25):
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("epoch %d loss %.4f" % (epoch, loss.item()))
torch.save(net.state_dict(), "model.pt")
