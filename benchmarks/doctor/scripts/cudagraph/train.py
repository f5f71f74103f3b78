import torch
import torch.nn as nn

torch.manual_seed(4)
device = torch.device("cuda")
N, IN, HID = 4096, 32, 64


class Pooling(nn.Module):
    """Mean of the rows of each group."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x, group):
        one_hot = nn.functional.one_hot(group, self.groups).to(x.dtype)
        return one_hot.t() @ x / N


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(IN, HID)
        self.pool = Pooling(64)
        self.fc2 = nn.Linear(HID, 1)

    def forward(self, x, group):
        return self.fc2(self.pool(torch.relu(self.fc1(x)), group))


model = Net().to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
static_x = torch.randn(N, IN, device=device)
static_group = torch.randint(0, 64, (N,), device=device)
static_y = torch.randn(64, 1, device=device)

# warm up on a side stream
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3):
        opt.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(static_x, static_group), static_y).backward()
        opt.step()
torch.cuda.current_stream().wait_stream(s)

g = torch.cuda.CUDAGraph()
opt.zero_grad(set_to_none=True)
with torch.cuda.graph(g):
    static_loss = nn.functional.mse_loss(model(static_x, static_group), static_y)
    static_loss.backward()
    opt.step()

data = torch.Generator(device=device).manual_seed(12)
for it in range(10):
    static_x.copy_(torch.randn(N, IN, device=device, generator=data))
    static_y.copy_(static_x.view(64, -1).mean(1, keepdim=True))
    g.replay()
    if it % 3 == 0:
        print(it, static_loss.item())
torch.save(model.state_dict(), "model.pt")
