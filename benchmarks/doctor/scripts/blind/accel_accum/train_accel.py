import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sampler import BlockShuffleSampler


def main():
    set_seed(42)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    i = torch.arange(192, dtype=torch.float32)
    x = torch.stack([torch.cos(i * 0.2), torch.sin(i * 0.33), (i % 12) / 12], 1)
    y = (x[:, 0] - x[:, 1] * x[:, 2]).unsqueeze(1)
    ds = TensorDataset(x, y)
    loader = DataLoader(ds, batch_size=12, sampler=BlockShuffleSampler(len(ds)))
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for epoch in range(2):
        for xb, yb in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(xb), yb)
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
        accelerator.print(f"epoch {epoch}: {loss.item():.5f}")
    torch.save(accelerator.unwrap_model(model).state_dict(), "model.pt")


if __name__ == "__main__":
    main()
