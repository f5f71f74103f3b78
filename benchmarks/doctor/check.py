"""Check the bench without the doctor: ``python -m benchmarks.doctor.check [--only NAME]``.

Runs both runs of each pair as a user would and compares their final weights: a planted fault must
change them, a pair without a fault must not. Writes benchmarks/results/doctor-check.json, for a GPU
doctor-check-gpu.json; a fault that changed nothing there is no fault, and the bench leaves it out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.doctor.catalog import list_pairs
from benchmarks.doctor.pair import Pair, digest_pair, find_right_lines, write_script
from benchmarks.measure import write_results
from benchmarks.pages import RESULTS

# tmpfs lists a folder in the order in which files came; ext4 does not.
WORKSPACE = "/dev/shm" if os.path.isdir("/dev/shm") else None
STOP = """
import runpy, sys, os
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
count, last = 0, int(sys.argv[1])
def stop(*_):
    global count
    count += 1
    if count == last:
        os._exit(0)
register_optimizer_step_post_hook(stop)
sys.argv = sys.argv[2:]
sys.path[0] = ""
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def list_variables(pair: Pair) -> tuple[dict[str, str], dict[str, str]]:
    """Return the environment variables that the two runs of a pair differ in."""
    if "--vary" not in pair.options:
        return {}, {}
    name, _, values = pair.options[pair.options.index("--vary") + 1].partition("=")
    name = {"threads": "OMP_NUM_THREADS", "seed-env": "PYTHONHASHSEED"}.get(name, name)
    first, second = (values or "1,2").split(",")
    return {name: first}, {name: second}


def make_environment() -> dict[str, str]:
    """Return the environment of a script: ``python`` is ours, and threads that wait use no core.

    Threads that spin while they wait slow down all pairs that are judged at the same time.
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PATH": path}


def run_script(command: str, folder: Path, variables: dict[str, str]) -> None:
    """Run a script's command in its folder; a failure raises with the end of its errors."""
    environment = make_environment() | variables
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{command} failed in {folder}: {done.stderr[-2000:]}")


@contextmanager
def plant(pair: Pair) -> Iterator[tuple[Path, list[str]]]:
    """Write a pair's script into a temporary folder, prepared; yield it and its right lines."""
    with TemporaryDirectory(dir=WORKSPACE) as place:
        folder = Path(place) / "project"
        write_script(pair, folder)
        lines = find_right_lines(pair, folder)
        if pair.setup:
            run_script(pair.setup, folder, {})
        yield folder, lines


def digest_weights(folder: Path) -> str:
    """Return a digest of the weights that the script saved last, from all ranks."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("model*.pt")):
        digest.update(path.read_bytes())
        path.unlink()
    return digest.hexdigest()[:16]


def compare_runs(pair: Pair, first: Path) -> tuple[str, str]:
    """Return the digests of the final weights of both runs, of which one is in ``first``."""
    place, second = first.parent, first.parent / "second"
    outs = [place / "out-0", place / "out-1"]
    commands = [pair.full_command.replace("{out}", shlex.quote(str(out))) for out in outs]
    a, b = list_variables(pair)
    if "--resume-at" in pair.options:
        step = pair.options[pair.options.index("--resume-at") + 1]
        write_script(pair, second)
        (place / "stop.py").write_text(STOP, encoding="utf-8")
        run_script(commands[0], first, {})
        stopped = commands[1].replace("python ", f"python {place / 'stop.py'} {step} ", 1)
        run_script(stopped, second, {})
        run_script(commands[1], second, {})
        return digest_weights(first), digest_weights(second)
    run_script(commands[0], first, a)
    digest = digest_weights(first)
    run_script(commands[1], first, b)
    return digest, digest_weights(first)


def check_pair(pair: Pair) -> dict[str, str]:
    """Return what both runs of a pair came to: "identical", "different" or "failed"."""
    found, error = "failed", {}
    try:
        with plant(pair) as (folder, _):
            first, second = compare_runs(pair, folder)
        found = "identical" if first == second else "different"
    except RuntimeError as raised:
        error = {"error": str(raised).strip().splitlines()[-1][:200]}
    wanted = "different" if pair.causes else "identical"
    return {"found": found, "wanted": wanted, "pair": digest_pair(pair), **error}


def locate_record(device: str) -> Path:
    """Return the file that the check of a device's pairs is recorded in."""
    return RESULTS / ("doctor-check.json" if device == "cpu" else "doctor-check-gpu.json")


def read_checked(file: Path, device: str) -> dict[str, dict[str, str]]:
    """Return what the check found, by pair; none of a pair that has been edited since."""
    if not file.exists():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))["results"]["rows"]
    digests = {pair.name: digest_pair(pair) for pair in list_pairs(device)}
    return {name: row for name, row in rows.items() if row["pair"] == digests.get(name)}


def main() -> int:
    """Check the pairs that were not checked yet; return how many are not what they claim to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="pairs whose name contains this, again")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=int, default=1, help="pairs at the same time")
    parser.add_argument("--out", type=Path, help="default: results/doctor-check.json")
    arguments = parser.parse_args()
    out = arguments.out or locate_record(arguments.device)
    rows = read_checked(out, arguments.device)
    wanted = [
        pair
        for pair in list_pairs(arguments.device)
        if arguments.only in pair.name and (arguments.only or pair.name not in rows)
    ]
    command = f"python -m benchmarks.doctor.check --device {arguments.device}"
    with ThreadPoolExecutor(arguments.processes) as pool:
        start = time.perf_counter()
        waiting = {pool.submit(check_pair, pair): pair.name for pair in wanted}
        for done in as_completed(waiting):
            row = rows[waiting[done]] = done.result()
            write_results(out.stem, command, {"rows": rows}, out.parent)
            mark = "" if row["found"] == row["wanted"] else f"  WRONG {row.get('error', '')}"
            passed = time.perf_counter() - start
            print(f"{waiting[done]}: {row['found']} (after {passed:.0f} s){mark}", flush=True)
    return sum(row["found"] != row["wanted"] for row in rows.values())


if __name__ == "__main__":
    sys.exit(main())
