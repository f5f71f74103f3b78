"""Whole runs on a CUDA device, each in two processes, and what a plain loop takes for the same:

    PYTHONPATH=src:. python3 -m benchmarks.gpu_runs full|images|together [--out FOLDER]

full: the conformer on 22,000 simulated records (17,000 of them to train on), 85 epochs, compiled.
images: resnet18 on breastmnist.npz (`--data FILE`), 200 epochs of the published protocol, in fp32
and with `--precision tf32`, which is what plain PyTorch computes convolutions in.
together: four runs at once on the device, each compared with the same run alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.measure import RESULTS, write_results
from seedless.bench.concurrent_runs import run_concurrently
from seedless.bench.flags import TORCH_DEFAULT, run_with_flags, use_plain_flags
from seedless.bench.rivals import make_plain_runner
from seedless.core.config import Config
from seedless.core.config_files import open_config
from seedless.proof.receipt import read_receipt
from seedless.proof.trail import read_trail
from seedless.runs.parallel_runs import TrainingJob, train_many
from seedless.runs.prepare import prepare
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log


def make_full() -> Config:
    """Return the published ECG protocol on simulated records, with compiled steps."""
    values = open_config("ptb-xl").model_dump()
    values["data"] = {"name": "simulated", "records": 22_000}
    values["train"] |= {"warmup_steps": 200}
    values["execution"] |= {"mode": "compiled"}
    return Config.model_validate(values)


def run_twice(config: Config) -> dict[str, Any]:
    """Train in two processes, one after the other; return digests, seconds and scores.

    Each compiles for itself: they share no cache.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.toml"
        file.write_text(config.to_toml())
        jobs = [TrainingJob(str(file), Path(folder) / name) for name in ("a", "b")]
        results = []
        for job in jobs:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{job.out}-compiled"
            results += train_many([job])
            print(f"{job.out.name}: {results[-1].seconds:.1f} s")
        for result in results:
            if not result.ok:
                raise SystemExit(f"exit code {result.exit_code}\n{result.stderr}")
        trails = [read_trail(job.out) for job in jobs]
        states = [[entry["state"] for entry in trail] for trail in trails]
        claims = read_receipt(jobs[0].out)["predicate"]
        return {
            "config": claims["config"]["values"],
            "records": claims["data"]["records"],
            "steps": trails[0][-1]["step"],
            "digests": [result.digest for result in results],
            "states_equal": states[0] == states[1],
            "states_compared": len(states[0]),
            "process_seconds": [result.seconds for result in results],
            "epochs_seconds": [
                sum(line["seconds"] for line in read_log(job.out / LOG)) for job in jobs
            ],
            # The first epoch compiles or captures.
            "first_epoch_seconds": [read_log(job.out / LOG)[0]["seconds"] for job in jobs],
            "later_epoch_seconds": [
                statistics.median(line["seconds"] for line in read_log(job.out / LOG)[1:])
                for job in jobs
            ],
            "metrics": json.loads((jobs[0].out / "metrics.json").read_bytes()),
        }


def time_plain(config: Config) -> dict[str, float]:
    """Return the seconds of the same epochs by the step most people write, TF32 on and off.

    It has no augmentation, evaluation or files: only steps on samples on the device.
    """
    problem = prepare(config).problem
    threads = problem.config.execution.threads or 1
    batches = [
        torch.from_numpy(rows).to(problem.device) for rows in problem.order.schedule(0).batches
    ]
    seconds = {}
    for name, precision in (("plain", TORCH_DEFAULT), ("plain, TF32 off", "fp32")):
        with run_with_flags(partial(use_plain_flags, threads=threads, precision=precision)):
            runner = make_plain_runner(problem, problem.train.samples.contiguous())
            for rows in batches:  # in which cuDNN tries its algorithms
                runner.step(rows)
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(config.train.epochs):
                for rows in batches:
                    runner.step(rows)
            torch.cuda.synchronize()
            seconds[name] = time.perf_counter() - began
    return seconds


def measure_images(data: Path, precision: str) -> dict[str, Any]:
    """Two runs of ours and the plain loop; the ratio counts our evaluation and files against us."""
    config = open_config("medmnist").change(
        data={"path": str(data)}, execution={"precision": precision}
    )
    ours = run_twice(config)
    plain = time_plain(config)
    return {
        "ours": ours,
        "plain_seconds": plain,
        "times_as_fast": min(plain.values()) / min(ours["epochs_seconds"]),
    }


def measure_together() -> dict[str, Any]:
    """Four runs of the full-size model on fewer records, alone and at once."""
    config = make_full().change(
        data={"records": 3000},
        train={"epochs": 12, "warmup_steps": 20},
        execution={"mode": "graph", "threads": 1},
    )
    return run_concurrently(config, 4, say=print).as_values()


def main() -> None:
    """Measure one part, print the file it is written to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("full", "images", "together"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--data", type=Path, default=Path("breastmnist.npz"))
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="fp32")
    arguments = parser.parse_args()
    name = arguments.part
    if arguments.part == "full":
        results = run_twice(make_full())
    elif arguments.part == "images":
        results = measure_images(arguments.data, arguments.precision)
        name += "" if arguments.precision == "fp32" else f"-{arguments.precision}"
    else:
        results = measure_together()
    options = "" if arguments.precision == "fp32" else f" --precision {arguments.precision}"
    command = f"python3 -m benchmarks.gpu_runs {arguments.part}{options}"
    print(write_results(f"gpu-{name}", command, results, arguments.out))


if __name__ == "__main__":
    main()
