"""The digests of models trained in worlds of CPUs, of GPUs, and of both."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import seedless
from benchmarks.measure import write_results
from benchmarks.world.models import MODELS, loss_of, make_batch, make_model
from benchmarks.world.processes import join, run_world

STEPS = 5
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
