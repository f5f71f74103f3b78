"""What trail and checkpoints cost: the same training with and without them, in turns.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.training [--out FOLDER]

On a CPU it is the demo; where there is a CUDA device, the conformer at full size on 17,000
simulated records with the published configuration, for six of its 85 epochs and with more
checkpoints. Set-up, which both have, is not counted. The wait at the end is counted. It
weighs more here than in a whole run: `share_of_85_epochs` spreads it over 85 epochs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import write_results
from benchmarks.pages import RESULTS
from seedless.core.config import Config
from seedless.core.config_files import open_config
from seedless.proof.trail import TrailWriter, describe_beginning
from seedless.runs.prepare import Prepared, prepare
from seedless.runs.train import CheckpointWriter
from seedless.train.background_observer import BackgroundObserver
from seedless.train.log import LogWriter
from seedless.train.loop import train
from seedless.train.progress_state import Observer, ProgressState, Start
from seedless.train.state_tensors import collect_state, restore_state

ROUNDS = 3 if torch.cuda.is_available() else 5


class Clock(Observer):
    """When the first step began, and when each epoch was over."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def begin(self, progress: ProgressState) -> None:
        """Start once everything is set up."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.times.append(time.perf_counter())

    def epoch(self, progress: ProgressState) -> None:
        """Note the time; all observers before this one have had their turn."""
        self.times.append(time.perf_counter())


def write_with(prepared: Prepared, run: Path) -> Sequence[Observer]:
    """Return the writers of a run, as the program uses them."""
    trail = TrailWriter(run, describe_beginning(prepared.config.digest, prepared.facts))
    writers = (trail, CheckpointWriter(run, prepared.config.digest))
    if prepared.problem.device.type == "cuda":
        return (BackgroundObserver(writers), LogWriter(run))
    return (*writers, LogWriter(run))


def time_training(
    prepared: Prepared, start: dict[str, Any], writing: bool
) -> tuple[float, list[float]]:
    """Train from the same start, with or without writers; return seconds in all and an epoch."""
    problem = prepared.problem
    restore_state(start, problem.model, problem.optimizer, problem.order)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        writers = write_with(prepared, Path(folder)) if writing else ()
        train(problem, (*writers, clock), start=Start())
        for writer in writers:
            if isinstance(writer, BackgroundObserver):
                writer.wait()
        total = time.perf_counter() - clock.times[0]
        return total, [after - before for before, after in pairwise(clock.times)]


def measure(config: Config) -> dict[str, Any]:
    """Return median seconds with and without, and the share of the time that writing takes."""
    prepared = prepare(config)
    problem = prepared.problem
    live = collect_state(problem.model, problem.optimizer, problem.order)
    start = {name: tensor.cpu().clone() for name, tensor in live.items()}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    epochs: dict[bool, list[float]] = {True: [], False: []}
    ends: dict[bool, list[float]] = {True: [], False: []}
    time_training(prepared, start, False)  # warm up
    for turn in range(ROUNDS):
        for writing in (True, False) if turn % 2 else (False, True):
            total, each = time_training(prepared, start, writing)
            seconds[writing].append(total)
            epochs[writing].append(statistics.mean(each))
            ends[writing].append(total - sum(each))
    with_it, without = (statistics.median(seconds[key]) for key in (True, False))
    epoch_with, epoch_without = (statistics.median(epochs[key]) for key in (True, False))
    end = statistics.median(ends[True]) - statistics.median(ends[False])
    return {
        "epoch_seconds": {"with": epoch_with, "without": epoch_without},
        "end_seconds": end,
        "epochs": config.train.epochs,
        "steps": len(problem.order.schedule(0).batches) * config.train.epochs,
        "with_seconds": with_it,
        "without_seconds": without,
        "share": with_it / without - 1,
        "all": {"with": seconds[True], "without": seconds[False]},
    }


def choose_configs() -> dict[str, Config]:
    """Return what is measured on this machine."""
    demo = open_config("demo").change(train={"epochs": 4})
    if not torch.cuda.is_available():
        return {"demo": demo}
    gpu = open_config("ptb-xl").model_dump()
    gpu["data"] = {"name": "simulated", "records": 17_000}
    gpu["train"] |= {"epochs": 6, "checkpoint_every": 3}
    return {"gpu": Config.model_validate(gpu)}


def main() -> None:
    """Measure, print, write results/training[-gpu].json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    folder = parser.parse_args().out
    results = {name: measure(config) for name, config in choose_configs().items()}
    name = "training-gpu" if "gpu" in results else "training"
    for found in results.values():
        if name == "training-gpu":
            epoch, end = found["epoch_seconds"], found["end_seconds"]
            found["share_of_85_epochs"] = (epoch["with"] + end / 85) / epoch["without"] - 1
            print(f"of 85 epochs: {found['share_of_85_epochs']:.2%}")
    for kind, found in results.items():
        print(f"{kind}: trail, log and checkpoints add {found['share']:.2%}")
    print(write_results(name, "python -m benchmarks.training", results, folder))


if __name__ == "__main__":
    main()
