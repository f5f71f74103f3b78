"""A plain loop leaves a line for each step, and trains to the same weights as without a record."""

import pytest

from seedless.script_recorder.causal_order import CAUSAL_ORDER

PLAIN_LOOP = """
import hashlib, random, sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        noise = np.random.rand(8).astype("float32") * random.random()
        return torch.from_numpy(noise) + index, index % 2

seed = int(sys.argv[1])
torch.manual_seed(seed)
np.random.seed(seed)
random.seed(seed)
model = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for epoch in range(2):
    for x, y in DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=int(sys.argv[2])):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
state = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
draws = (torch.rand(1).item(), random.random(), np.random.rand())
print(hashlib.sha256(state).hexdigest(), draws)
"""


@pytest.fixture(scope="module")
def plain_loop(scripts):
    """The plain loop without a record, with one, with one again, and with another seed."""
    return (
        scripts.run(PLAIN_LOOP, arguments=["0", "0"], recorded=False),
        *(scripts.run(PLAIN_LOOP, arguments=[seed, "0"]) for seed in "001"),
    )


def test_the_record_changes_neither_weights_nor_generators_nor_output(plain_loop):
    plain, recorded, _, other = plain_loop
    assert (recorded.stdout, recorded.stderr, recorded.code) == (plain.stdout, "", 0)
    assert other.stdout != plain.stdout  # so the comparison can fail


def test_there_is_one_line_for_each_step(plain_loop):
    _, recorded, again, other = plain_loop
    steps = recorded.of_kind("step")
    line_of_step = PLAIN_LOOP.splitlines().index("        optimizer.step()") + 1
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert {line["line"] for line in steps} == {f"script.py:{line_of_step}"}
    assert set(steps[0]["values"]) == set(CAUSAL_ORDER) - {"scale"}
    assert steps == again.of_kind("step")
    differing = {
        name
        for mine, others in zip(steps, other.of_kind("step"), strict=True)
        for name in mine["values"]
        if mine["values"][name] != others["values"][name]
    }
    assert differing == set(CAUSAL_ORDER) - {"scale", "rate"}


CLOSURE_LOOP = """
import sys
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    def closure():
        optimizer.zero_grad()
        loss = model(torch.full((2, 4), 1.0 + step)).square().sum()
        loss.backward()
        return loss
    if sys.argv[1] == "inside":
        optimizer.step(closure)
    else:
        closure()
        optimizer.step()
"""


def test_gradients_that_a_closure_computes_are_those_of_its_step(scripts):
    inside, before = (
        scripts.run(CLOSURE_LOOP, arguments=[place]).of_kind("step")
        for place in ("inside", "before")
    )
    assert [line["values"] for line in inside] == [line["values"] for line in before]
    assert len({str(line["values"]["gradients"]) for line in inside}) == 3
