# Logistic regression and a two-layer net by hand: no nn.Module, no torch.optim.
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float32)

N, D, H = 200, 20, 32
true_w = torch.linspace(-1, 1, D)
X = torch.randn(N, D)
y = (X @ true_w > 0).float()

params = {
    "w1": torch.randn(D, H) * 0.1,
    "b1": torch.zeros(H),
    "w2": torch.randn(H) * 0.1,
}
for p in params.values():
    p.requires_grad_(True)
velocity = {k: torch.zeros_like(v) for k, v in params.items()}


def forward(params, x):
    h = torch.relu(x @ params["w1"] + params["b1"])
    return h @ params["w2"]


lr, mu = 0.5, 0.9
for it in range(8):
    batch = torch.randperm(N)[:50]
    logits = forward(params, X[batch])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y[batch])
    loss.backward()
    with torch.no_grad():
        for k, p in params.items():
            velocity[k] = mu * velocity[k] + p.grad
            p -= lr * velocity[k]
            p.grad = None
    print("iter %d loss %.4f" % (it, loss.item()))

torch.save(params, "model.pt")
