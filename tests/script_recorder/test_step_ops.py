"""The operations of one step of a script, recorded in its own process without changing its bits."""

import json
from types import SimpleNamespace

import pytest

from seedless.script_recorder.step_ops import MAX_THREADS, OpsOfStep

SCRIPT = """
import copy, hashlib, random
import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 6 * 6, 4)

    def forward(self, x):
        x = checkpoint(lambda x: self.norm(self.conv(x)).relu(), x, use_reentrant=False)
        return self.head(nn.functional.dropout(x.flatten(1), 0.2))

torch.manual_seed(0), np.random.seed(0), random.seed(0)
data = TensorDataset(torch.randn(24, 1, 8, 8), torch.arange(24) % 4)
model = Net()
compiled = torch.compile(nn.Linear(4, 4), backend="aot_eager")
optimizer = torch.optim.AdamW([*model.parameters(), *compiled.parameters()])
for x, y in DataLoader(data, batch_size=8, shuffle=True, num_workers=1):
    x = x + np.random.rand()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(model(x)), y)
    loss.backward()
    best = copy.deepcopy(model)
    optimizer.step()
state = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
draws = (torch.rand(1).item(), random.random(), np.random.rand())
print(hashlib.sha256(state).hexdigest(), draws)
print(torch._dynamo.utils.counters["frames"], torch._dynamo.utils.counters["stats"])
"""


@pytest.fixture(scope="module")
def runs(scripts):
    """The script without a record, and with one of its first and of its second step."""
    return (
        scripts.run(SCRIPT, recorded=False),
        *(scripts.run(SCRIPT, ops_at=step) for step in (1, 2)),
    )


def test_recording_changes_no_bit_and_no_compiled_frame(runs):
    plain, first, second = runs
    assert first.stdout == plain.stdout
    assert second.stdout == plain.stdout
    assert (plain.code, first.code, second.code) == (0, 0, 0)


def test_one_step_is_recorded_from_the_end_of_the_one_before(runs):
    _, first, second = runs
    recorded = [one for one in second.ops if "op" in one]
    assert second.ops[-1] == {"kind": "end", "ops": len(recorded), "truncated": False}
    drawn = [{one["op"] for one in run.ops if one.get("draws")} for run in (first, second)]
    assert "aten.randn.default" in drawn[0]  # the data, before the first step
    assert "aten.randn.default" not in drawn[1]
    assert "aten.bernoulli_.float" in drawn[1]


def test_draws_of_numpy_stand_between_the_operations(runs):
    kinds = [one.get("kind", one.get("op")) for one in runs[2].ops]
    at = kinds.index("draw")
    draw = runs[2].ops[at]
    line = SCRIPT.splitlines().index("    x = x + np.random.rand()") + 1
    assert (draw["generator"], draw["line"]) == ("numpy", f"script.py:{line}")
    assert kinds[at + 1] == "aten.add.Tensor"


def test_compiled_code_is_one_operation_forward_and_one_backward(runs):
    phases = [one["phase"] for one in runs[2].ops if one.get("op") == "compiled"]
    assert phases == ["forward", "backward"]


def test_each_tensor_of_the_step_has_a_digest_by_name(runs):
    (tensors,) = runs[2].tensors
    assert set(tensors) == {"weights_before", "gradients", "weights", "optimizer_state"}
    assert "Net.conv.weight" in tensors["gradients"]
    assert "Net.conv.weight/exp_avg" in tensors["optimizer_state"]
    before, after = tensors["weights_before"], tensors["weights"]
    assert set(before) == set(after)
    assert all(before[name] != after[name] for name in before)
    assert before == runs[1].tensors[0]["weights"]


def test_threads_that_start_before_the_end_of_the_step_are_recorded(tmp_path):
    recorder = SimpleNamespace(
        step=0, is_busy=False, settings=SimpleNamespace(folder=str(tmp_path))
    )
    ops = OpsOfStep(recorder, 2)
    ops.see_thread("loader.py:9")
    recorder.step = 1
    ops.see_step(1)
    for _ in range(MAX_THREADS):
        ops.see_thread("loader.py:20")
    recorder.step = 2
    ops.see_step(2)
    ops.see_thread("later.py:1")
    (file,) = tmp_path.glob("ops-*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    threads = [line["line"] for line in lines if line["kind"] == "thread"]
    assert threads == ["loader.py:9", *["loader.py:20"] * (MAX_THREADS - 1)]
