"""Training by several processes: the same bits for every world, and what a step costs.

    python -m benchmarks.world devices [--out FOLDER]
    python -m benchmarks.world cost [--sizes 1 2 4] [--rounds 5] [--out FOLDER]

`devices` trains each model in worlds of CPUs, of GPUs, and of both, and compares digests: world-
devices.json. `cost` times a step of one batch by 1, 2 and 4 CPU processes of one thread each, in
portable arithmetic and by torch's DistributedDataParallel, and counts messages and bytes: world-
cost.json. Both arithmetics take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import Tensor, nn

import seedless
from benchmarks.measure import RESULTS, write_results
from seedless.portable.batch.group_step import GroupStep

STEPS, CLASSES = 5, 5
# A world: the devices of its ranks, and the library that connects them.
WORLDS: dict[str, tuple[tuple[str, ...], str]] = {
    "one CPU": (("cpu",), "gloo"),
    "two CPUs": (("cpu", "cpu"), "gloo"),
    "three CPUs": (("cpu", "cpu", "cpu"), "gloo"),
    "five CPUs": (("cpu",) * 5, "gloo"),
    "one GPU": (("cuda",), "gloo"),
    "one GPU, NCCL": (("cuda",), "nccl"),
    "two processes on one GPU": (("cuda", "cuda"), "gloo"),
    "a CPU and a GPU": (("cpu", "cuda"), "gloo"),
    "two CPUs and two processes on a GPU": (("cpu", "cuda", "cpu", "cuda"), "gloo"),
}


class Residual(nn.Module):
    """Convolutions with BatchNorm in training."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter, self.norm = nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
            )
            for _ in range(3)
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 3, height, width) -> (batch, classes)."""
        x = F.relu(self.norm(self.enter(x)))
        for block in self.blocks:
            x = F.relu(x + block(x))
        out: Tensor = self.head(x.mean((2, 3)))
        return out


class Encoder(nn.Module):
    """A transformer with dropout that samples decide."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, activation="gelu"
        )
        self.enter = nn.Linear(12, width)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.drop, self.head = seedless.Dropout(0.2, layer=0), nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 12, time) -> (batch, classes)."""
        out: Tensor = self.head(self.drop(self.body(self.enter(x.transpose(1, 2))).mean(1)))
        return out


class Recurrent(nn.Module):
    """A GRU."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.body, self.head = nn.GRU(12, width, batch_first=True), nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 12, time) -> (batch, classes)."""
        out: Tensor = self.head(self.body(x.transpose(1, 2))[0][:, -1])
        return out


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conformer, small": (lambda: seedless.build("conformer", small=True), (12, 250)),
    "ResNet with BatchNorm": (Residual, (3, 16, 16)),
    "transformer, dropout on": (Encoder, (12, 60)),
    "GRU": (Recurrent, (12, 30)),
}


def make_model(name: str, device: str) -> nn.Module:
    """Return a model in its structured start, in training mode."""
    model = MODELS[name][0]()
    seedless.initialize(model)
    return model.to(device).train()


def make_batch(name: str, samples: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return samples made from integers, targets and keys."""
    shape = (samples, *MODELS[name][1])
    numbers = torch.arange(torch.Size(shape).numel()) * 40503 % 1024 - 512
    x = (numbers.float() / 256).view(shape)
    return x.to(device), (torch.arange(samples) % 2).to(device), torch.arange(samples).to(device)


def loss_of(outputs: Tensor, x: Tensor, y: Tensor, keys: Tensor) -> Tensor:
    """Return the cross entropy of the first classes."""
    return F.cross_entropy(outputs[:, :CLASSES], y)


def share_out(samples: int, size: int) -> list[int]:
    """Return uneven parts: each rank has two samples, and the last one all the others too."""
    return [2] * (size - 1) + [samples - 2 * (size - 1)]


def train_in_world(rank: int, devices: tuple[str, ...], backend: str, folder: str) -> None:
    """Train every model in one world, and write the digest that this rank ends with."""
    join(rank, len(devices), backend, folder)
    device, samples, found = devices[rank], 24, {}
    for name in MODELS:
        model = make_model(name, device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        sizes = share_out(samples, len(devices))
        start = sum(sizes[:rank])
        mine = [
            each[start : start + sizes[rank]].to(device)
            for each in make_batch(name, samples, "cpu")
        ]

        def forward(x: Tensor, y: Tensor, keys: Tensor, model: nn.Module = model) -> Tensor:
            with seedless.dropout_keys(samples=keys, epoch=0, axis=0):
                out: Tensor = model(x)
            return out

        with seedless.portable(group=dist.group.WORLD) as p:
            for _ in range(STEPS):
                optimizer.zero_grad()
                loss = p.step(forward, loss_of, *mine)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
        found[name] = {"digest": seedless.digest(model), "loss": loss.item()}
    Path(folder, f"rank{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def join(rank: int, size: int, backend: str, folder: str) -> None:
    """Join the world as one rank, with one thread."""
    torch.set_num_threads(1)
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    dist.init_process_group(
        backend, init_method=f"file://{folder}/store", rank=rank, world_size=size
    )


def run_world(target: Callable[..., None], size: int, *arguments: Any) -> list[Any]:
    """Start the ranks of a world and return what each wrote."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(target, (*arguments, folder), nprocs=size)
        return [json.loads(Path(folder, f"rank{rank}.json").read_text()) for rank in range(size)]


def compare_devices(out: Path) -> bool:
    """Train at once in every world that this machine can form; write which digests were found."""
    can_use_gpu = torch.cuda.is_available()
    worlds = {
        label: world for label, world in WORLDS.items() if can_use_gpu or "cuda" not in world[0]
    }
    rows: dict[str, Any] = {}

    def train(label: str) -> str:
        devices, backend = worlds[label]
        ranks = run_world(train_in_world, len(devices), devices, backend)
        rows[label] = {name: sorted({rank[name]["digest"] for rank in ranks}) for name in MODELS}
        return label

    is_same: dict[str, bool] = {}
    with ThreadPoolExecutor(len(worlds)) as pool:
        for future in as_completed([pool.submit(train, label) for label in worlds]):
            print(future.result(), rows[future.result()], flush=True)
            digests = [set(rows[label][name]) for label in rows for name in MODELS]
            is_same = {
                name: len(set().union(*(rows[label][name] for label in rows))) == 1
                for name in MODELS
            }
            results = {
                "same": is_same,
                "one_digest_in_each_world": all(len(each) == 1 for each in digests),
                "digests": rows,
                "steps": STEPS,
                "untested": "NCCL with more than one rank: it takes one rank for each GPU",
            }
            write_results("world-devices", "python -m benchmarks.world devices", results, out)
    return all(is_same.values())


def time_world(rank: int, size: int, samples: int, rounds: int, folder: str) -> None:
    """Time steps of every model in a world of CPU processes, portable and by DDP, in turns."""
    join(rank, size, "gloo", folder)
    found = {}
    for name in MODELS:
        sizes = [samples // size] * size
        mine = [each.split(sizes)[rank] for each in make_batch(name, samples, "cpu")]
        steps, exchange = make_steps(name, mine, size)
        times: dict[str, list[float]] = {kind: [] for kind in steps}
        for turn in range(rounds + 2):
            before = exchange.messages, exchange.bytes
            for kind, step in steps.items():
                dist.barrier()
                began = time.perf_counter()
                step()
                if turn >= 2:  # the first steps trace the model and reserve memory
                    times[kind].append(time.perf_counter() - began)
            used = exchange.messages - before[0], exchange.bytes - before[1]
        found[name] = {
            "seconds": {kind: statistics.median(values) for kind, values in times.items()},
            "messages": used[0],
            "bytes": used[1],
            "parameters": sum(p.numel() for p in make_model(name, "cpu").parameters()),
        }
    found["peak_rss_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    Path(folder, f"rank{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def make_steps(
    name: str, mine: list[Tensor], size: int
) -> tuple[dict[str, Callable[[], None]], Any]:
    """Return a portable step in the group and a native one by DDP, and the portable exchange."""
    ours, theirs = make_model(name, "cpu"), make_model(name, "cpu")
    wrapped = nn.parallel.DistributedDataParallel(theirs) if size > 1 else theirs
    adams = [torch.optim.AdamW(model.parameters(), lr=1e-3) for model in (ours, theirs)]
    group_step = GroupStep(ours.parameters(), dist.group.WORLD)

    def run(model: nn.Module, x: Tensor, keys: Tensor) -> Tensor:
        with seedless.dropout_keys(samples=keys, epoch=0, axis=0):
            out: Tensor = model(x)
        return out

    def portable_step() -> None:
        with seedless.portable():
            adams[0].zero_grad()
            group_step.step(lambda x, y, keys: run(ours, x, keys), loss_of, *mine)
            adams[0].step()

    def native_step() -> None:
        x, y, keys = mine
        adams[1].zero_grad()
        loss_of(run(wrapped, x, keys), x, y, keys).backward()
        adams[1].step()

    steps = {"portable": portable_step, "native": native_step}
    if size == 1:

        def whole_step() -> None:
            x, y, keys = mine
            with seedless.portable():
                adams[0].zero_grad()
                loss_of(run(ours, x, keys), x, y, keys).backward()
                adams[0].step()

        steps["portable, no group"] = whole_step
    return steps, group_step.exchange


def measure_cost(sizes: list[int], samples: int, rounds: int, out: Path) -> None:
    """Time all worlds and write a row for each model and number of processes."""
    rows: dict[str, Any] = {}
    for size in sizes:
        ranks = run_world(time_world, size, size, samples, rounds)
        for name in MODELS:
            row = dict(ranks[0][name])
            row["seconds"] = {
                kind: max(rank[name]["seconds"][kind] for rank in ranks) for kind in row["seconds"]
            }
            rows.setdefault(name, {})[str(size)] = row
            print(size, name, row, flush=True)
        rows.setdefault("peak_rss_kib", {})[str(size)] = max(r["peak_rss_kib"] for r in ranks)
        results = {"rows": rows, "samples": samples, "rounds": rounds, "threads_a_process": 1}
        command = f"python -m benchmarks.world cost --sizes {' '.join(map(str, sizes))}"
        write_results("world-cost", f"{command} --samples {samples}", results, out)


def main() -> None:
    """Read the arguments and do what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["devices", "cost"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.what == "cost":
        measure_cost(arguments.sizes, arguments.samples, arguments.rounds, arguments.out)
    elif not compare_devices(arguments.out):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
