import torch
from torch import nn
import torch.nn.functional as F


class NoisyTopKGate(nn.Module):
    def __init__(self, dim, experts, k, noise):
        super().__init__()
        self.w = nn.Linear(dim, experts, bias=False)
        self.w_noise = nn.Linear(dim, experts, bias=False)
        self.k, self.noise = k, noise

    def forward(self, x):
        logits = self.w(x)
        if self.training:
            logits = logits + self.noise * torch.randn_like(logits) * F.softplus(self.w_noise(x))
        top, idx = logits.topk(self.k, dim=-1)
        gates = torch.zeros_like(logits).scatter(-1, idx, top.softmax(-1))
        return gates


class MoE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gate = NoisyTopKGate(cfg.dim, cfg.experts, cfg.k, cfg.noise)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(cfg.dim, 12), nn.ReLU(), nn.Linear(12, 1)) for _ in range(cfg.experts))

    def forward(self, x):
        g = self.gate(x)
        y = torch.stack([e(x).squeeze(-1) for e in self.experts], -1)
        return (g * y).sum(-1), g
