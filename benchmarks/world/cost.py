"""Seconds, messages and bytes of a step, by the number of processes."""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import seedless
from benchmarks.measure import write_results
from benchmarks.world.models import MODELS, loss_of, make_batch, make_model
from benchmarks.world.processes import join, run_world
from seedless.portable.batch.group_step import GroupStep


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
