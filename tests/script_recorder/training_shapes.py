"""Training loops of several shapes; prints a digest of the weights of each.

Run with and without the recorder by test_torch_hooks.py.
"""

import hashlib
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


def digest(*modules):
    tensors = [t for m in modules for t in m.state_dict().values()]
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in tensors)).hexdigest()[:16]


def gan():
    makes = nn.Linear(4, 6)
    judges = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    first = torch.optim.Adam(makes.parameters(), lr=0.01)
    second = torch.optim.RMSprop(judges.parameters(), lr=0.01)
    for _ in range(3):
        second.zero_grad()
        made = makes(torch.randn(5, 4)).detach()
        (judges(made).mean() - judges(torch.randn(5, 6)).mean()).backward()
        second.step()
        first.zero_grad()
        (-judges(makes(torch.randn(5, 4))).mean()).backward()
        first.step()
    return digest(makes, judges)


def accumulate():
    model = nn.Sequential(nn.Conv1d(1, 3, 3), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(18, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    off = torch.amp.GradScaler("cpu", enabled=False)
    data = TensorDataset(torch.randn(24, 1, 8), torch.arange(24) % 2)
    for index, (x, y) in enumerate(DataLoader(data, 4)):
        nn.functional.cross_entropy(model(x), y).div(3).backward()
        if index % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            off.step(optimizer)
            optimizer.zero_grad()
    return digest(model)


def scaled():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.randn(4, 8)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return digest(model)


def closures():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x = torch.randn(6, 3)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return digest(model)


def embedding():
    model = nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.tensor([1, 2, 2])).sum().backward()
        optimizer.step()
    return digest(model)


def functional():
    model = nn.Linear(3, 2)
    weights = dict(model.named_parameters())

    def call(weights, x):
        return torch.func.functional_call(model, weights, x).sum()

    grads = torch.func.vmap(torch.func.grad(call), (None, 0))(weights, torch.randn(4, 3))
    return float(sum(g.sum() for g in grads.values()))


def checkpointed():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        checkpoint(model, torch.randn(3, 4), use_reentrant=False).sum().backward()
        optimizer.step()
    return digest(model)


def in_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(accumulate()))
    thread.start()
    thread.join()
    return results[0]


torch.manual_seed(1)
for shape in (gan, accumulate, scaled, closures, embedding, functional, checkpointed, in_thread):
    print(shape.__name__, shape())
print(torch.rand(1).item())


class Unreadable:
    def tobytes(self):
        raise RuntimeError("nobody may read this")

    dtype = "none"


class Strange(nn.Linear):
    def forward(self, x):
        return super().forward(x), Unreadable()


def strange():
    """The last loop: what its module returns makes the recorder fail."""
    model = Strange(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 3))[0].sum().backward()
        optimizer.step()
    return digest(model)


print(strange())
