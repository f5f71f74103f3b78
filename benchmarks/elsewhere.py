"""Portable runs made on one machine and executed on another:

    python -m benchmarks.elsewhere make FOLDER [--data FILE] [--device cuda]
    python -m benchmarks.elsewhere verify FOLDER [--data FILE] [--device cuda] [--only NAME]
        [--out FOLDER]

`make` trains the demonstration and, with breastmnist.npz, ResNet-18 on it for five epochs, and
packs each as a stripped run, FOLDER/NAME.tar.xz; the demonstration also with all of its files, as
FOLDER/demo-complete.tar.xz. `verify`, on the other machine, executes them again and writes
elsewhere-DEVICE.json, or with --only elsewhere-DEVICE-NAME.json: where each run was made, and the
verdict. Of the complete run it executes a sample of two of its eight segments.
"""

from __future__ import annotations

import argparse
import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import RESULTS, write_results
from seedless.audit.verification import verify
from seedless.core.config import Config
from seedless.core.config_files import open_config
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import STRIPPED_NOTE, read_receipt
from seedless.proof.stripped_run import describe_stripped, is_stripped
from seedless.runs.train import train_run

EPOCHS = 5  # of the images
COMPLETE = "demo-complete"
SAMPLE = 2  # of the segments of the complete run


def build_runs(device: str, data: str | None) -> dict[str, Config]:
    """Return the runs by name, in portable arithmetic on a device."""
    execution = {"arithmetic": "portable", "device": device, "threads": 2}
    demo = open_config("demo").change(execution=execution)
    runs = {"demo": demo, COMPLETE: demo.change(train={"checkpoint_every": 1})}
    if data is not None:
        images = open_config("medmnist").change(
            data={"name": Path(data).stem, "path": data},
            train={"epochs": EPOCHS, "evaluate_every": 1, "checkpoint_every": EPOCHS},
            execution=execution,
        )
        runs["breastmnist"] = images
    return runs


def copy_stripped(run: Path, to: Path) -> Path:
    """Copy a finished run without its large files into the new folder ``to``, and add the note."""
    receipt = read_receipt(run)
    covered = receipt["predicate"]["files"]
    dropped = [name for name in covered if is_stripped(name)]
    to.mkdir(parents=True)
    for name in (RECEIPT, *(name for name in covered if name not in dropped)):
        shutil.copyfile(run / name, to / name)
    (to / STRIPPED_NOTE).write_bytes(describe_stripped(receipt, dropped))
    return to


def make(folder: Path, device: str, data: str | None) -> None:
    """Train each run and pack it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, config in build_runs(device, data).items():
        with TemporaryDirectory() as place:
            run = train_run(config, Path(place) / name)
            pack(run.path, folder)
        print(f"{name} on {device}: {run.digest}")


def pack(run: Path, folder: Path) -> None:
    """Write a run as FOLDER/NAME.tar.xz, without its large files unless it is to be complete."""
    with TemporaryDirectory() as place, tarfile.open(folder / f"{run.name}.tar.xz", "w:xz") as file:
        whole = run.name == COMPLETE
        file.add(run if whole else copy_stripped(run, Path(place) / run.name), run.name)


def check(folder: Path, device: str, data: str | None, only: str | None) -> dict[str, Any]:
    """Execute each packed run, or the one that is named, again on a device; return the verdicts."""
    verdicts: dict[str, Any] = {}
    for packed in sorted(folder.glob(f"{only or '*'}.tar.xz")):
        name = packed.name.removesuffix(".tar.xz")
        with TemporaryDirectory() as place:
            with tarfile.open(packed) as file:
                file.extractall(place, filter="data")
            run = Path(place) / name
            claims = read_receipt(run)["predicate"]
            place_of_data = None if claims["data"]["name"] == "simulated" else data
            sample = SAMPLE if name == COMPLETE else None
            verdict = verify(run, device=device, data=place_of_data, sample=sample)
            made = claims["environment"]
            verdicts[name] = {
                "verdict": verdict.as_dict(),
                "weights": claims["weights"],
                "test": claims["metrics"]["test"]["macro_auc"],
                "made_with": {key: made[key] for key in ("python", "packages", "cpu", "devices")},
            }
        print(f"{name} on {device}: {verdict.as_text()}")
    return verdicts


def main() -> None:
    """Make runs here, or execute those made elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("make", "verify"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data", help="breastmnist.npz")
    parser.add_argument("--only", metavar="NAME", help="verify this run alone")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if chosen.action == "make":
        make(chosen.folder, chosen.device, chosen.data)
        return
    verdicts = check(chosen.folder, chosen.device, chosen.data, chosen.only)
    command = f"python -m benchmarks.elsewhere verify FOLDER --device {chosen.device}"
    name = f"elsewhere-{chosen.device}"
    if chosen.only is not None:
        command, name = f"{command} --only {chosen.only}", f"{name}-{chosen.only}"
    print(write_results(name, command, verdicts, chosen.out))


if __name__ == "__main__":
    main()
