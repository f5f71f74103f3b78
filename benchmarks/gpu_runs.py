"""Whole runs on a CUDA device, each in two processes, and what a plain loop takes for the same:

    PYTHONPATH=src:. python3 -m benchmarks.gpu_runs full|images|together|resume [--out FOLDER]

full: the conformer on 22,000 simulated records (17,000 of them to train on), 85 epochs, compiled.
images: resnet18 on breastmnist.npz (`--data FILE`), 200 epochs of the published protocol, in fp32
and with `--precision tf32`, which is what plain PyTorch computes convolutions in.
together: four runs at once on the device, each compared with the same run alone; with `--service`
through NVIDIA's multi-process service.
resume: a portable run of the conformer that is killed on four CPU processes and resumed by one on
the device, compared with the same run on the device alone.
`--small` tries a part out: small models, few records, and no compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
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
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import read_receipt
from seedless.proof.trail import read_trail
from seedless.runs.parallel_runs import TrainingJob, train_many
from seedless.runs.prepare import prepare
from seedless.studies.engine.gpu_sharing import share_gpus
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log


def make_full(*, small: bool = False) -> Config:
    """Return the published ECG protocol on simulated records, with compiled steps."""
    values = open_config("ptb-xl").model_dump()
    values["data"] = {"name": "simulated", "records": 22_000}
    values["train"] |= {"warmup_steps": 200}
    values["execution"] |= {"mode": "compiled"}
    return shrink(Config.model_validate(values)) if small else Config.model_validate(values)


def shrink(config: Config) -> Config:
    """Return a configuration that takes seconds on a CPU."""
    return config.change(
        data={"records": 120},
        model={"small": True},
        order={"batch_size": 16},
        train={"epochs": 3, "warmup_steps": 2, "evaluate_every": 1},
        execution={"mode": "eager", "threads": 1},
    )


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


def measure_together(*, small: bool, service: bool) -> dict[str, Any]:
    """Four runs of the full-size model on fewer records, alone and at once."""
    config = make_full(small=small)
    if not small:
        config = config.change(
            data={"records": 3000},
            train={"epochs": 12, "warmup_steps": 20},
            execution={"mode": "graph", "threads": 1},
        )
    with share_gpus(4 if service else 1, on_cuda=torch.cuda.is_available(), say=print) as shared:
        found = run_concurrently(config, 2 if small else 4, say=print).as_values()
    if service and torch.cuda.is_available() and not shared:
        raise SystemExit("error: expected the multi-process service, it could not be used")
    return {**found, "service": shared}


def measure_resume(*, small: bool) -> dict[str, Any]:
    """Kill a run on four CPU processes after its first checkpoint; resume it on the device."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = make_full(small=True).change(
        train={"epochs": 4, "checkpoint_every": 1}, execution={"arithmetic": "portable"}
    )
    if not small:
        config = config.change(data={"records": 1000}, model={"small": False})
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "run.toml").write_text(config.to_toml())
        start = ["train", str(place / "run.toml"), "--json", "--out"]
        whole = run_seedless(*start, str(place / "whole"), "--set", f"execution.device={device}")
        killed, on_cpus = place / "killed", ("--processes", "4", "--set", "execution.device=cpu")
        command = [sys.executable, "-m", "seedless", *start, str(killed), *on_cpus]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        while not list(killed.glob("checkpoints/*")) and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)  # all five
        process.wait()
        if (killed / RECEIPT).exists():
            raise SystemExit("error: expected a killed run, it was finished before it was killed")
        reached = read_trail(killed)[-1]["step"]
        resumed = run_seedless("resume", str(killed), "--device", device, "--json")
        states = [[entry["state"] for entry in read_trail(place / n)] for n in ("whole", "killed")]
        return {
            "config": config.model_dump(mode="json"),
            "device": device,
            "killed_after_step": reached,
            "steps": read_trail(killed)[-1]["step"],
            "weights": [whole["weights"], resumed["weights"]],
            "states_equal": states[0] == states[1],
            "states_compared": len(states[0]),
            "same": whole["weights"] == resumed["weights"] and states[0] == states[1],
        }


def run_seedless(*arguments: str) -> dict[str, Any]:
    """Run a command that prints JSON; return it."""
    command = [sys.executable, "-m", "seedless", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"error: {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}"
        )
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def main() -> None:
    """Measure one part, print the file it is written to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("full", "images", "together", "resume"))
    parser.add_argument("--service", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--data", type=Path, default=Path("breastmnist.npz"))
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="fp32")
    arguments = parser.parse_args()
    name = arguments.part
    if arguments.part == "full":
        results = run_twice(make_full(small=arguments.small))
    elif arguments.part == "images":
        results = measure_images(arguments.data, arguments.precision)
        name += "" if arguments.precision == "fp32" else f"-{arguments.precision}"
    elif arguments.part == "resume":
        results = measure_resume(small=arguments.small)
    else:
        results = measure_together(small=arguments.small, service=arguments.service)
        name += "-service" if arguments.service else ""
    options = "" if arguments.precision == "fp32" else f" --precision {arguments.precision}"
    options += " --service" * arguments.service + " --small" * arguments.small
    command = f"python3 -m benchmarks.gpu_runs {arguments.part}{options}"
    print(write_results(f"gpu-{name}", command, results, arguments.out))
    raise SystemExit(0 if results.get("same", True) else 1)


if __name__ == "__main__":
    main()
