"""Networks that groups of processes train in tests, each with something that needs care."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

from tests.portable.test_microbatch import fill

SAMPLES = 24


class Residual(nn.Module):
    """Convolutions, BatchNorm in training, a BatchNorm without statistics, a pooled head."""

    def __init__(self):
        super().__init__()
        self.enter, self.one = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.norm_one = nn.BatchNorm2d(4), nn.BatchNorm2d(4, track_running_stats=False)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.enter(x.view(-1, 1, 5, 1).expand(-1, 1, 5, 4))
        x = F.relu(self.norm(x))
        return self.head(F.relu(x + self.norm_one(self.one(x))).mean((2, 3)))


class Tied(nn.Module):
    """A weight used twice, a weight in two parts, and a weight norm."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(5, 5)
        self.table = nn.Parameter(torch.zeros(6, 5))
        self.head = weight_norm(nn.Linear(5, 3))

    def forward(self, x):
        x = F.gelu(self.shared(F.gelu(self.shared(x))))
        return self.head(x @ self.table[:5] + self.table[5])


class Stateful(nn.Module):
    """Power iterations in buffers, a mean over batches, a checkpoint, a hook, a frozen layer."""

    def __init__(self):
        super().__init__()
        self.frozen, self.enter = nn.Linear(5, 8).requires_grad_(False), nn.Linear(8, 8)
        self.norm, self.head = nn.BatchNorm1d(8, momentum=None), spectral_norm(nn.Linear(8, 3))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.enter.weight.register_hook(lambda grad: grad * 0.5)

    def forward(self, x):
        self.scale.mul_(0.75)
        x = x * self.scale.float()
        x = checkpoint(lambda x: F.gelu(self.enter(self.frozen(x))), x, use_reentrant=False)
        return self.head(self.norm(x))


def make_stateful():
    torch.manual_seed(3)  # spectral_norm draws its first vectors
    return fill(Stateful())


class Tasks(nn.Module):
    """Outputs with names, a parameter that the loss alone uses, and a layer frozen later."""

    def __init__(self):
        super().__init__()
        self.enter, self.kind, self.size = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 1)
        self.scales = nn.Parameter(torch.zeros(2))
        self.register_buffer("earlier", torch.zeros(SAMPLES, 3))

    def forward(self, x):
        x = F.gelu(self.enter(x))
        return {"kind": self.kind(x), "size": self.size(x)}

    def measure(self, outputs, x, y, keys):
        """Weigh two losses, and keep outputs for the next step."""
        kind, size = outputs["kind"], outputs["size"]
        near = F.mse_loss(kind, self.earlier[: len(kind)].clone())
        self.earlier[: len(kind)] = kind.detach()
        losses = torch.stack([F.cross_entropy(kind, y), F.mse_loss(size[:, 0], x[:, 0])])
        return (losses * (-self.scales).exp() + self.scales).sum() + near


class Critic(nn.Module):
    """A network with the gradient of its output as a second output, and its scale as a third."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        x = x.detach().requires_grad_()
        out = self.net(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return out, slope, self.scale.exp().expand(len(x))


def penalize(outputs, x, y, keys):
    """A gradient penalty."""
    out, slope, scale = outputs
    return F.cross_entropy(out * scale[0], y) + (slope.square().sum(1) - 1).square().mean()
