import torch
from torch import nn


class LowRankLinear(nn.Module):
    def __init__(self, cin, cout, rank):
        super().__init__()
        self.u = nn.Parameter(torch.empty(cout, rank))
        self.v = nn.Parameter(torch.empty(rank, cin))
        self.bias = nn.Parameter(torch.empty(cout))
        self.register_buffer("scale", torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.orthogonal_(self.u)
        nn.init.normal_(self.v, std=0.1)
        with torch.no_grad():
            self.bias.fill_(0.01)
            self.scale.fill_(self.v.shape[0] ** -0.5)

    def forward(self, x):
        return (x @ self.v.t()) @ self.u.t() * self.scale + self.bias


class StochasticDepth(nn.Module):
    def __init__(self, block, p):
        super().__init__()
        self.block, self.p = block, p

    def forward(self, x):
        if self.training and torch.rand(()) < self.p:
            return x
        return x + self.block(x)
