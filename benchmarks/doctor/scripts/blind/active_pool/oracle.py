import torch


def universe(n=400):
    i = torch.arange(n, dtype=torch.float32)
    x = torch.stack([torch.sin(i * 0.31), torch.cos(i * 0.17), torch.sin(i * 0.05)], 1)
    y = (x[:, 0] * x[:, 1] > x[:, 2] * 0.3).long()
    return x, y
