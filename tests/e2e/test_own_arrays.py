"""From a file of arrays to trained weights, by public names alone, twice, to the same bits."""

import pytest

TRAIN = """
import sys
import torch, torch.nn.functional as F
import seedless
from seedless.core.config import DataConfig
from seedless.data.loading import load
from seedless.data.normalize import fit_scale

seedless.make_deterministic(threads=1)
data = load(DataConfig(name=sys.argv[1]))
train = data.take(data.rows("train")[:320])
X = torch.from_numpy(fit_scale(data).apply(train.X))
Y = torch.from_numpy(train.Y).float()
model = seedless.build("baseline", leads=len(data.leads), classes=len(data.classes), small=True)
seedless.initialize(model, "dct")
order = seedless.order("content", X, labels=train.Y, batch_size=32)
keys = torch.from_numpy(seedless.sample_keys(X))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
means = []
for epoch in range(3):
    total = 0.0
    for batch in order.schedule(epoch).batches:
        optimizer.zero_grad()
        with seedless.dropout_keys(samples=keys[batch], epoch=epoch):
            loss = F.binary_cross_entropy_with_logits(model(X[batch]), Y[batch])
        loss.backward()
        optimizer.step()
        total += float(loss.detach())
    means.append(total)
assert means[-1] < 0.7 * means[0], means
print(seedless.digest(model))
"""


@pytest.fixture(scope="module")
def first(run_python, real_data):
    """What one process comes to."""
    return run_python("-c", TRAIN, str(real_data / "ptb-xl-derived100.npz")).stdout


@pytest.mark.parametrize("variables", [{}, {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2"}])
def test_real_arrays_train_to_the_same_bits_twice(run_python, real_data, first, variables):
    file = str(real_data / "ptb-xl-derived100.npz")
    second = run_python("-c", TRAIN, file, **variables).stdout
    assert first == second
    assert first.startswith("sha256:")


# Each takes one mechanism away, and must let two processes part.
SABOTAGE = {
    "order": ("order.schedule(epoch).batches", "torch.randperm(320).split(32)"),
    "initialization": ('seedless.initialize(model, "dct")', "restart(model)"),
    "dropout": ("optimizer = torch", "forget(model)\noptimizer = torch"),
}
HELP = """
import torch
def restart(model):
    for module in model.modules():
        getattr(module, "reset_parameters", lambda: None)()
def forget(model):
    for name, module in model.named_children():
        if type(module).__name__ == "Dropout":
            setattr(model, name, torch.nn.Dropout(module.p))
        forget(module)
"""


@pytest.fixture(scope="module")
def parted(run_python, real_data):
    """What two processes come to, each without one mechanism after the other."""
    script = ""
    for old, new in SABOTAGE.values():
        assert old in TRAIN
        script += "import torch; torch.seed()\n" + HELP + TRAIN.replace(old, new)
    file = str(real_data / "ptb-xl-derived100.npz")
    found = [run_python("-c", script, file).stdout.split() for _ in "ab"]
    return dict(zip(SABOTAGE, zip(*found, strict=True), strict=True))


@pytest.mark.parametrize("mechanism", SABOTAGE)
def test_negative_control_without_a_mechanism_two_runs_part(parted, mechanism):
    one, other = parted[mechanism]
    assert one != other


def test_another_thread_count_is_another_arithmetic(run_python, real_data, first):
    file = str(real_data / "ptb-xl-derived100.npz")
    assert run_python("-c", TRAIN.replace("threads=1", "threads=2"), file).stdout != first
