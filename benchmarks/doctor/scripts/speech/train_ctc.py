import torch
import torch.nn as nn

SEED, STEPS, T, N, L = 6, 8, 400, 16, 160
BASES = "_ACGT"  # the first is the blank
torch.manual_seed(SEED)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Basecaller(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(40, 96)
        self.rnn = nn.Linear(96, 96)
        self.out = nn.Linear(96, len(BASES))

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        h = h + torch.tanh(self.rnn(h))
        return self.out(h).log_softmax(-1)


feats = torch.randn(STEPS, T, N, 40)
targets = torch.randint(1, len(BASES), (STEPS, N, L))
in_len = torch.full((N,), T, dtype=torch.long)
tg_len = torch.full((N,), L, dtype=torch.long)

net = Basecaller().to(device)
criterion = nn.CTCLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(STEPS):
    logp = net(feats[i].to(device))
    loss = criterion(logp, targets[i].to(device), in_len, tg_len)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", i, "ctc", round(loss.item(), 4))
torch.save(net.state_dict(), "model.pt")
