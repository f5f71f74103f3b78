"""A batch in parts has the bits of the whole batch: ten steps of the conformer, portable.

    python -m benchmarks.split [--device cuda] [--small] [--batch 128] [--rounds 5] [--out FOLDER]

Batches of 128 are computed whole, as 2 x 64 and as 4 x 32, others likewise; digests of the weights
after each step, seconds and peak memory go to split-DEVICE.json (split-small-DEVICE.json for the
small model). The first steps, which trace, capture and are compared, are not timed; then the three
take turns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import RESULTS, take_turns, write_results
from seedless.core.config import parse_config
from seedless.core.digests import digest
from seedless.runs.prepare import prepare
from seedless.train.step_modes import make_step

BATCH, STEPS = 128, 10
SHARES = (1, 2, 4)  # parts of a batch


def make_steps(batch: int, parts: int, device: str, small: bool) -> tuple[dict[str, Any], Any]:
    """Take ten steps in parts of one size; return their digests and memory, and one step more."""
    settings = {
        "data": {"name": "simulated", "records": 2 * batch},
        "model": {"name": "conformer", "small": small},
        "init": {"basis": "dct"},
        "order": {"batch_size": batch},
        "train": {"microbatch": batch // parts if parts > 1 else None},
        "execution": {"arithmetic": "portable", "device": device},
    }
    problem = prepare(parse_config(settings)).problem
    step, rows = make_step(problem), torch.arange(batch, device=device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    digests: list[str] = []
    for _ in range(STEPS):
        step(rows, 0)
        digests.append(digest(problem.model))
    found: dict[str, Any] = {"digests": digests}
    if device == "cuda":
        found["peak_bytes"] = torch.cuda.max_memory_allocated()

    def take_step() -> None:
        step(rows, 0)
        if device == "cuda":
            torch.cuda.synchronize()

    return found, take_step


def main() -> None:
    """Run all sizes of parts, compare, write; fail where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    runs, rivals, batch = {}, {}, arguments.batch
    for parts in SHARES:
        name = f"{parts} x {batch // parts}"
        runs[name], rivals[name] = make_steps(batch, parts, arguments.device, arguments.small)
        print(name, runs[name]["digests"][-1], flush=True)
    seconds = take_turns(rivals, arguments.rounds)
    whole = seconds[f"1 x {batch}"]
    for name, value in seconds.items():
        runs[name] |= {"seconds_a_step": value, "ratio": value / whole, "rounds": arguments.rounds}
        print(f"{name}: {value:.4f} s, {value / whole:.2f} times the whole batch", flush=True)
    same = len({tuple(found["digests"]) for found in runs.values()}) == 1
    command = (
        f"python -m benchmarks.split --device {arguments.device}{' --small' * arguments.small}"
        + (f" --batch {batch}" if batch != BATCH else "")
    )
    name = f"split-{'small-' * arguments.small}{arguments.device}"
    print(write_results(name, command, {"same": same, "runs": runs}, arguments.out))
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
