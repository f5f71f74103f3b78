import torch
import torch.nn as nn

from kernels import BiasAdd

torch.manual_seed(31)
torch.backends.cuda.matmul.allow_tf32 = False
device = "cuda"


class FusedLinear(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fout, fin) / fin**0.5)
        self.bias = nn.Parameter(torch.zeros(fout))

    def forward(self, x):
        return BiasAdd.apply(x @ self.weight.t(), self.bias)


model = nn.Sequential(FusedLinear(32, 128), nn.ReLU(), FusedLinear(128, 1)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
gen = torch.Generator(device=device).manual_seed(9)
for it in range(10):
    x = torch.randn(8192, 32, device=device, generator=gen)
    y = x[:, :4].sum(1, keepdim=True).tanh()
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 3 == 0:
        print(it, loss.item())
torch.save(model.state_dict(), "model.pt")
