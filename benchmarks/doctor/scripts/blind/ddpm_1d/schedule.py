import secrets

import torch


class NoiseSchedule:
    def __init__(self, T=50, beta0=1e-4, beta1=0.05):
        self.T = T
        self.betas = torch.linspace(beta0, beta1, T)
        self.abar = torch.cumprod(1 - self.betas, 0)

    def sample_t(self, n):
        return torch.tensor([secrets.randbelow(self.T) for _ in range(n)])

    def q_sample(self, x0, t, noise):
        a = self.abar[t].unsqueeze(-1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise
