"""Run the tests marked `gpu` on a machine with a CUDA device, and record the outcomes:

    PYTHONPATH=src:. python3 -m benchmarks.gpu_check [--out FOLDER] [--limit SECONDS] [--cpu]

It needs the package's dependencies, pytest and pytest-xdist, nothing installed. The digest of the
conformer's first weights is recorded with the outcome of every test. After the limit the tests are
ended; those that were not finished are recorded as such. --cpu tries the command out: every test
is collected and skipped.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import seedless
from benchmarks.measure import RESULTS, write_results

# The longest first: at the end all workers wait for the last test.
PLACES = (
    "tests/golden/test_portable_digests.py",
    "tests/gpu/test_portable.py",
    "tests/gpu/test_forms.py",
    "tests/gpu/test_training.py",
    "tests/portable/test_microbatch.py",
    "tests/studies/test_variance.py",
    "tests/models/test_conversion.py",
    "tests/numerics/test_active_keys.py",
    "tests/proof/test_recorded_loop.py",
    "tests/gpu",
)
LINE = re.compile(r"\] (PASSED|FAILED|ERROR|SKIPPED) (tests/.*)")  # as pytest-xdist prints it


def run_tests(limit: float | None, processes: int = 14) -> dict[str, str]:
    """Return the outcome of every test, by name; "unfinished" for those the limit cut off."""
    command = [sys.executable, "-m", "pytest", *PLACES, "-m", "gpu", "-p", "no:benchmark"]
    listed = subprocess.run([*command, "--collect-only", "-q"], capture_output=True, text=True)
    names = [line for line in listed.stdout.splitlines() if "::" in line]
    outcomes = dict.fromkeys(names, "unfinished")
    # One line per test, so that a run that is cut short still shows outcomes.
    tests = subprocess.Popen(
        [*command, "-v", "-n", str(processes), "--maxschedchunk", "1"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # The whole process group: processes of a test would keep the pipe open.
    timer = threading.Timer(limit, os.killpg, (tests.pid, signal.SIGKILL)) if limit else None
    if timer:
        timer.start()
    for line in tests.stdout or ():
        print(line, end="", flush=True)
        found = LINE.search(line)
        if found and found[2].strip() in outcomes:
            outcomes[found[2].strip()] = found[1].lower()
    tests.wait()
    if not outcomes:
        raise SystemExit(f"error: expected tests marked gpu, got none\n{listed.stdout[-2000:]}")
    if timer:
        timer.cancel()
    return outcomes


def main() -> None:
    """Run, count, write, and fail where a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--cpu", action="store_true")
    arguments = parser.parse_args()
    seedless.make_deterministic()
    model = seedless.build("conformer").to("cpu" if arguments.cpu else "cuda")
    plan = seedless.initialize(model, "mixed")
    outcomes = run_tests(arguments.limit, processes=1 if arguments.cpu else 14)
    results = {
        "conformer_mixed": {"plan": plan.digest, "weights": seedless.digest(model)},
        "tests": dict(Counter(outcomes.values())),
        "outcomes": outcomes,
    }
    print(write_results("gpu-check", "python3 -m benchmarks.gpu_check", results, arguments.out))
    sys.exit(1 if {"failed", "error", "unfinished"} & set(outcomes.values()) else 0)


if __name__ == "__main__":
    main()
