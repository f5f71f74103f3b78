"""Train networks of timm from each candidate for the default start, as long as there is time.

    python -m benchmarks.starts.compare --data FOLDER --out FOLDER [--continue FILE ...]
        [--seconds SECONDS] [--processes N] [--device cuda]

It needs timm, breastmnist.npz and ptb-xl-derived100.npz, in --data or one folder below it. Every
training that ends is written to OUT/default-start.jsonl at once. --continue takes such files of
earlier calls: their trainings are copied to OUT and not made again. No training is begun that would
end after --seconds. Exit code 3: trainings are left.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.starts.images import (
    BREAST,
    BREAST_FILE,
    ECG_FILE,
    Images,
    read_breast,
    read_spectrograms,
)
from benchmarks.starts.networks import build_started
from benchmarks.starts.plan import PIXELS, Training, list_trainings
from benchmarks.starts.training import train
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.engine.gpu_sharing import share_gpus

RECORD = "default-start.jsonl"
Row = dict[str, Any]


def find_file(folder: Path, name: str) -> Path:
    """Return the file of a name in a folder, or in one of the folders in it."""
    for file in (folder / name, *sorted(folder.glob(f"*/{name}"))):
        if file.is_file():
            return file
    raise SystemExit(f"error: expected {name} in {folder} or a folder in it, found none")


@lru_cache(maxsize=2)
def read_images(name: str, folder: Path) -> Images:
    """Return a data set by its name; a process reads it once."""
    if name == BREAST:
        return read_breast(find_file(folder, BREAST_FILE), PIXELS)
    return read_spectrograms(find_file(folder, ECG_FILE))


def execute(training: Training, folder: Path, device: str) -> Row:
    """Return what a training ended with, or the error that ended it."""
    began = time.monotonic()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    row: Row = training.as_dict()
    try:
        images = read_images(training.data, folder)
        model = build_started(training.network, images, training.start, training.replicate)
        row |= train(model, images, training.replicate, training.epochs, device).as_dict()
    except Exception as error:  # one network that fails must not end the others
        row["error"] = f"{type(error).__name__}: {error}"[:300]
    place = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    row |= {"seconds": round(time.monotonic() - began, 2), "device": place}
    return {**row, "torch": torch.__version__}


def identify(row: Row) -> Training:
    """Return the training that a row is of."""
    return Training(*(row[name] for name in Training.__dataclass_fields__))


def read_rows(files: Iterable[Path]) -> dict[Training, Row]:
    """Return the rows of earlier calls that ended with a score, by their training."""
    rows: dict[Training, Row] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "error" not in row:
                rows.setdefault(identify(row), row)
    return rows


def run(
    trainings: Sequence[Training],
    known: dict[Training, Row],
    folder: Path,
    out: Path,
    *,
    seconds: float,
    processes: int,
    device: str,
    work: Callable[[Training, Path, str], Row] = execute,
) -> int:
    """Execute what is not known, as long as there is time; return how many are left."""
    began, longest, printed = time.monotonic(), 0.0, 0.0
    waiting = [training for training in trainings if training not in known]
    out.mkdir(parents=True, exist_ok=True)
    running: set[Future[Row]] = set()
    context = multiprocessing.get_context("spawn")
    done = failed = 0
    with (
        (out / RECORD).open("w", encoding="utf-8") as record,
        ProcessPoolExecutor(processes, mp_context=context) as pool,
    ):
        for row in known.values():
            record.write(json.dumps(row) + "\n")
        record.flush()
        while waiting or running:
            # [Step 1] Begin trainings while processes are free and the time is enough.
            while waiting and len(running) < processes:
                if time.monotonic() - began + 1.2 * longest > seconds:
                    break
                running.add(pool.submit(work, waiting.pop(0), folder, device))
            if not running:
                break
            # [Step 2] Write what has ended, so that a process that is killed loses nothing.
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                row = future.result()
                longest = max(longest, row["seconds"])
                done, failed = done + 1, failed + ("error" in row)
                record.write(json.dumps(row) + "\n")
                record.flush()
                if "error" in row:
                    print(f"{row['network']}, {row['start']}: {row['error']}", flush=True)
            passed = time.monotonic() - began
            if passed - printed > 15:
                printed = passed
                print(f"{passed:5.0f} s  {done} done, {failed} failed, {len(waiting)} waiting")
    left = len(waiting) + failed
    print(
        f"{time.monotonic() - began:5.0f} s  {done} done, {failed} failed, {left} left", flush=True
    )
    return left


def main() -> None:
    """Execute the trainings of the plan; exit code 3 where some are left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--continue", dest="earlier", type=Path, nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    set_environment_variables()
    with share_gpus(arguments.processes, on_cuda=arguments.device == "cuda", say=print):
        left = run(
            list_trainings(),
            read_rows(arguments.earlier),
            arguments.data,
            arguments.out,
            seconds=arguments.seconds,
            processes=arguments.processes,
            device=arguments.device,
        )
    raise SystemExit(3 if left else 0)


if __name__ == "__main__":
    main()
