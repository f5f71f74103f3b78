"""The recorder starts in every kind of process, seeds for experiments, and ends when asked."""

import json

import pytest

from seedless.script_recorder.settings import Settings, make_environment, read_settings

UNSEEDED = """
import random
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return np.float32(np.random.rand()) + torch.rand(2) + random.random() + own.random()

own = np.random.default_rng()
tempfile.mkdtemp()

if __name__ == "__main__":
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(
        Noisy(), 2, shuffle=True, num_workers=1, multiprocessing_context=sys.argv[1]
    )
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        print(model.weight.detach().numpy().tobytes().hex(), flush=True)
"""

RANKS = """
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.tensor import DeviceMesh, Shard, distribute_tensor

def train(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    sharded = nn.Parameter(distribute_tensor(torch.ones(4), DeviceMesh("cpu", [0, 1]), [Shard(0)]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    local = torch.optim.SGD([sharded], lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        model(torch.full((3, 2), float(rank))).sum().backward()
        optimizer.step()
    if rank == 0:  # a collective of the recorder would wait for the other rank
        sharded.grad = sharded.detach().clone()
        local.step()
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.start_processes(train, nprocs=2, start_method="fork")
"""

ALL = {"python": 1, "numpy": 2, "torch": 3}


@pytest.fixture(scope="module")
def unseeded(scripts):
    """An unseeded script; then with seeds, once with forked and once with spawned workers."""
    return (
        scripts.run(UNSEEDED, arguments=["fork"]),
        *(
            scripts.run(UNSEEDED, arguments=[start], seeds=ALL, end_after=2)
            for start in ("fork", "spawn")
        ),
    )


def test_seeds_of_an_experiment_replace_entropy(unseeded):
    plain, seeded, again = unseeded
    assert plain.code == 0, plain.stderr
    assert seeded.stdout == again.stdout
    assert seeded.stdout not in plain.stdout  # so the comparison can fail
    assert seeded.of_kind("step") == again.of_kind("step")


def test_a_script_ends_after_the_wanted_step(unseeded):
    plain, seeded, _ = unseeded
    assert (len(plain.of_kind("step")), len(plain.stdout.split())) == (6, 6)
    assert (len(seeded.of_kind("step")), len(seeded.stdout.split())) == (2, 1)
    assert (seeded.code, seeded.stderr) == (0, "")
    (end,) = (line for line in seeded.of_kind("end") if line["steps"])
    assert end["reason"] == "end_after"


def test_entropy_and_draws_are_recorded_with_the_line(unseeded):
    record = unseeded[0]
    seeds = {(line["generator"], line["value"] is None) for line in record.of_kind("seed")}
    assert ("numpy-generator", True) in seeds
    assert ("python-generator", True) not in seeds  # made by tempfile for itself
    line = UNSEEDED.splitlines().index("own = np.random.default_rng()") + 1
    (made,) = (
        each
        for record in unseeded[0].records
        for each in record
        if each["kind"] == "seed" and each["call"] == "np.random.default_rng"
    )
    assert made["line"] == f"script.py:{line}"


def test_a_worker_has_a_record_of_its_draws(unseeded):
    (worker,) = (each for each in unseeded[0].records if each[0]["role"] == "worker")
    draws = [line for line in worker if line["kind"] == "draws"]
    line = UNSEEDED.splitlines().index("    def __getitem__(self, index):") + 2
    assert {(each["call"], each["line"], each["count"]) for each in draws} == {
        ("random.random", f"script.py:{line}", 2),
        ("np.random.rand", f"script.py:{line}", 2),
    }
    assert worker[0]["worker_id"] == 0
    assert worker[-1]["kind"] == "end"


def test_each_rank_has_a_record_and_no_digest_starts_a_collective(scripts):
    done = scripts.run(RANKS, arguments=[str(scripts.folder / "meeting")])
    assert done.code == 0, done.stderr
    ranks = {record[0]["rank"]: record for record in done.records if record[0]["world_size"] == 2}
    steps = {rank: [r for r in ranks[rank] if r["kind"] == "step"] for rank in ranks}
    assert {rank: len(lines) for rank, lines in steps.items()} == {0: 3, 1: 2}
    for first, second in zip(steps[0], steps[1], strict=False):
        assert first["values"]["weights"] == second["values"]["weights"]
        assert first["values"]["input"] != second["values"]["input"]


def test_settings_are_read_as_written(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"folder": "/records", "seeds": {"torch": 1}}))
    assert read_settings(str(path)) == Settings(folder="/records", seeds={"torch": 1})
    environment = make_environment(str(path), {"PYTHONPATH": "/mine", "OTHER": "1"})
    assert environment["PYTHONPATH"].endswith("inject:/mine")
    assert environment["OTHER"] == "1"
    assert "PYTHONHASHSEED" not in environment
