"""A batch in parts has the bits of the whole batch: ten steps of the conformer, portable.

    python -m benchmarks.split [--device cuda] [--small] [--out FOLDER]

Batches of 128 are computed whole, as 2 x 64 and as 4 x 32; digests of the weights after each step,
seconds and peak memory go to split-DEVICE.json (split-small-DEVICE.json for the small model).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import RESULTS, write_results
from seedless.core.config import parse_config
from seedless.core.digests import digest
from seedless.runs.prepare import prepare
from seedless.train.step_modes import make_step

BATCH, STEPS = 128, 10
PARTS = (None, 64, 32)


def run(part: int | None, device: str, small: bool) -> dict[str, Any]:
    """Take the steps with parts of one size; return digests, seconds a step and memory."""
    settings = {
        "data": {"name": "simulated", "records": 2 * BATCH},
        "model": {"name": "conformer", "small": small},
        "init": {"basis": "dct"},
        "order": {"batch_size": BATCH},
        "train": {"microbatch": part},
        "execution": {"arithmetic": "portable", "device": device},
    }
    problem = prepare(parse_config(settings)).problem
    step, rows = make_step(problem), torch.arange(BATCH, device=device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    digests: list[str] = []
    began = time.perf_counter()
    for _ in range(STEPS):
        step(rows, 0)
        digests.append(digest(problem.model))
    found: dict[str, Any] = {
        "digests": digests,
        "seconds_a_step": (time.perf_counter() - began) / STEPS,
    }
    if device == "cuda":
        found["peak_bytes"] = torch.cuda.max_memory_allocated()
    return found


def main() -> None:
    """Run all sizes of parts, compare, write; fail where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    runs = {}
    for part in PARTS:
        name = f"{BATCH // (part or BATCH)} x {part or BATCH}"
        runs[name] = run(part, arguments.device, arguments.small)
        print(name, runs[name]["digests"][-1], f"{runs[name]['seconds_a_step']:.2f} s", flush=True)
    same = len({tuple(found["digests"]) for found in runs.values()}) == 1
    command = (
        f"python -m benchmarks.split --device {arguments.device}{' --small' * arguments.small}"
    )
    name = f"split-{'small-' * arguments.small}{arguments.device}"
    print(write_results(name, command, {"same": same, "runs": runs}, arguments.out))
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
