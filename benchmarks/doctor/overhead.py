"""What recording costs: ``python -m benchmarks.doctor.overhead [--repeats N]``.

Runs a script plain, with pass 1 (digests of every step) and with pass 2 (every operation of one
step), in turns whose order alternates, and writes benchmarks/results/doctor-overhead.json. Times
are seconds of the processor in the training process with one thread, which other programs on the
machine disturb little, and seconds on the clock beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.doctor.pair import SCRIPTS
from benchmarks.measure import write_results
from seedless.script_recorder.settings import Settings, make_environment, write_settings

NETS = ("cnn", "conformer", "cnn-workers")
KINDS = ("plain", "pass 1", "pass 2")
STEPS = 16
RECORDED_STEP = 10
WARM_UP = 4  # steps that are not counted


def run_script(net: str, kind: str, threads: int) -> dict[str, float]:
    """Return the seconds of one run: all of it, its median step, and the recorded step."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        if kind != "plain":
            records = folder / "records"
            records.mkdir()
            step = RECORDED_STEP if kind == "pass 2" else None
            write_settings(Settings(str(records), ops_at=step), str(folder / "settings.json"))
            environment = make_environment(str(folder / "settings.json"), environment)
        script = str(SCRIPTS / "timed" / "train.py")
        command = [sys.executable, script, "--net", net, "--steps", str(STEPS)]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True)
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times = json.loads((folder / "times.json").read_text(encoding="utf-8"))
        if kind != "plain" and not list(records.iterdir()):
            raise RuntimeError("nothing was recorded: there is no overhead to measure")
    used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    found = {"script_wall": wall, "script_cpu": used}
    for clock in ("wall", "cpu"):
        steps = [b - a for a, b in zip(times[clock], times[clock][1:], strict=False)]
        counted = [
            seconds
            for number, seconds in enumerate(steps, 1)
            if number > WARM_UP and number != RECORDED_STEP
        ]
        found[f"step_{clock}"] = statistics.median(counted)
        found[f"recorded_step_{clock}"] = steps[RECORDED_STEP - 1]
    return found


def measure(net: str, repeats: int, threads: int) -> dict[str, Any]:
    """Return medians of each kind of run and their ratios to the plain one."""
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for turn in range(repeats):
        for kind in KINDS if turn % 2 == 0 else reversed(KINDS):
            runs[kind].append(run_script(net, kind, threads))
    seconds = {
        kind: {name: statistics.median(run[name] for run in found) for name in found[0]}
        for kind, found in runs.items()
    }
    plain, first, second = (seconds[kind] for kind in KINDS)
    ratios = {}
    for clock in ("cpu", "wall"):
        ratios[clock] = {
            "pass 1, script": first[f"script_{clock}"] / plain[f"script_{clock}"],
            "pass 1, step": first[f"step_{clock}"] / plain[f"step_{clock}"],
            "pass 2, script": second[f"script_{clock}"] / plain[f"script_{clock}"],
            "pass 2, recorded step": second[f"recorded_step_{clock}"] / plain[f"step_{clock}"],
        }
    return {"seconds": seconds, "ratios": ratios, "runs": runs}


def main() -> None:
    """Measure each network and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="doctor-overhead", help="of the record")
    arguments = parser.parse_args()
    results: dict[str, Any] = {
        "steps": STEPS,
        "recorded_step": RECORDED_STEP,
        "repeats": arguments.repeats,
        "threads": arguments.threads,
        "nets": {},
    }
    command = f"python -m benchmarks.doctor.overhead --repeats {arguments.repeats}"
    for net in NETS:
        found = results["nets"][net] = measure(net, arguments.repeats, arguments.threads)
        print(net, json.dumps(found["ratios"]), flush=True)
        print(write_results(arguments.name, command, results))


if __name__ == "__main__":
    main()
