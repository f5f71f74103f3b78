"""Loops of every shape train to the same bits with the recorder, and each step is recorded."""

from collections import Counter
from pathlib import Path

import pytest

SHAPES = (Path(__file__).parent / "training_shapes.py").read_text()

COMPILED = """
import hashlib
import torch
import torch._dynamo.utils
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.last = nn.Linear(16, 2)
    def forward(self, x):
        return self.last(nn.functional.dropout(self.inner(x), 0.3))

torch.manual_seed(0)
model = Net()
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
x, y = torch.randn(16, 8), torch.arange(16) % 2

@torch.compile(backend="aot_eager", fullgraph=True)
def compute_loss(x, y):
    return nn.functional.cross_entropy(model(x), y)

for step in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(x), y) if step % 2 else compute_loss(x, y)
    loss.backward()
    optimizer.step()
counters = torch._dynamo.utils.counters
print({name: dict(counters[name]) for name in ("stats", "frames", "graph_break")})
weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
print(hashlib.sha256(weights).hexdigest())
"""


@pytest.fixture(scope="module")
def shapes(scripts):
    """Loops of many shapes without and with a record; every warning is an error."""
    return tuple(
        scripts.run(SHAPES, recorded=recorded, prefix=["-W", "error"]) for recorded in (False, True)
    )


def test_every_shape_trains_to_the_same_bits(shapes):
    plain, recorded = shapes
    assert plain.code == 0, plain.stderr
    assert (recorded.stdout, recorded.stderr, recorded.code) == (plain.stdout, "", 0)


def test_every_step_of_every_optimizer_is_recorded(shapes):
    steps = shapes[1].of_kind("step")
    assert Counter(line["optimizer_type"] for line in steps) == {
        "Adam": 3,
        "RMSprop": 3,
        "SGD": 6,
        "AdamW": 4,
        "LBFGS": 1,
        "SparseAdam": 2,
    }
    assert [line["optimizer"] for line in steps[:4]] == [1, 0, 1, 0]  # by creation, as in a GAN


def test_the_batches_of_an_accumulated_step_are_listed(shapes):
    step = shapes[1].of_kind("step")[6]
    assert {name: len(step["values"][name]) for name in ("indices", "batch", "input", "loss")} == {
        "indices": 3,
        "batch": 3,
        "input": 3,
        "loss": 3,
    }


def test_scale_and_autocast_are_recorded(shapes):
    scaled = [line for line in shapes[1].of_kind("step") if line["optimizer_type"] == "AdamW"]
    assert [line["shown"]["scale"] for line in scaled] == [64.0, 64.0, 128.0, 128.0]
    seen = {line["flags"]["autocast_cpu"] for line in shapes[1].of_kind("flags")}
    assert seen == {False, "torch.bfloat16"}


def test_what_a_backward_pass_computes_again_is_not_recorded_twice(shapes):
    checkpointed = shapes[1].of_kind("step")[15]
    assert len(checkpointed["values"]["input"]) == 1


def test_a_recorder_that_fails_says_so_and_lets_the_script_go_on(shapes):
    last = shapes[1].lines[-1]
    assert last == {
        "kind": "error",
        "where": "leave",
        "error": "RuntimeError: nobody may read this",
    }


def test_compiled_graphs_and_their_results_stay_as_they_are(scripts):
    plain = scripts.run(COMPILED, recorded=False)
    recorded = scripts.run(COMPILED)
    assert plain.code == 0, plain.stderr
    assert (recorded.stdout, recorded.stderr) == (plain.stdout, plain.stderr)
    assert len(recorded.of_kind("step")) == 4
    assert recorded.of_kind("flags")[0]["flags"]["compiled"]
    assert "output" in recorded.of_kind("step")[1]["values"]
