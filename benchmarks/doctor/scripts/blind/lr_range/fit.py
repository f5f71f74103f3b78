import torch
from torch import nn

from finder import LRFinder

torch.manual_seed(123)
i = torch.arange(300, dtype=torch.float32)
X = torch.stack([torch.sin(i * 0.1 * k) for k in range(1, 7)], dim=1)
Y = (X[:, :1] * X[:, 1:2] + X[:, 2:3] - 0.5 * X[:, 5:6])

model = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 1))
finder = LRFinder(model, nn.functional.mse_loss, [1e-3, 3e-3, 1e-2, 3e-2, 1e-1])
max_lr = finder.suggest(X, Y)
print(f"suggested lr: {max_lr:.4g}")

opt = torch.optim.SGD(model.parameters(), lr=max_lr, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=max_lr, total_steps=30)
for step in range(30):
    idx = torch.randint(0, len(X), (50,))
    loss = nn.functional.mse_loss(model(X[idx]), Y[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
print("final", loss.item())
torch.save(model.state_dict(), "model.pt")
