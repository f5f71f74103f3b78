import time

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.model_selection import train_test_split
from torch import nn

t_start = time.time()
np.random.seed(21)
torch.manual_seed(21)


class RBFNet(nn.Module):
    def __init__(self, centers, gamma):
        super().__init__()
        self.centers = nn.Parameter(torch.as_tensor(centers, dtype=torch.float32))
        self.log_gamma = nn.Parameter(torch.full((len(centers),), float(np.log(gamma))))
        self.out = nn.Linear(len(centers), 1)

    def forward(self, x):
        d2 = (x.unsqueeze(1) - self.centers).pow(2).sum(-1)
        return self.out(torch.exp(-self.log_gamma.exp() * d2)).squeeze(-1)


X = np.random.randn(200, 2)
y = np.sin(X[:, 0] * 2) + 0.2 * X[:, 1]
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2)
km = KMeans(n_clusters=8, n_init=3).fit(X_tr)
print("kmeans inertia", km.inertia_, "after", round(time.time() - t_start, 2), "s")

model = RBFNet(km.cluster_centers_, gamma=1.0)
opt = torch.optim.Adam(model.parameters(), lr=0.02)
xb, yb = torch.tensor(X_tr, dtype=torch.float32), torch.tensor(y_tr, dtype=torch.float32)
for step in range(40):
    loss = (model(xb) - yb).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("train mse", loss.item(), "total", round(time.time() - t_start, 2), "s")
torch.save(model.state_dict(), "model.pt")
