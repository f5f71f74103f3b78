"""Run the tests of a CUDA device and of the committed digests there, and record what was seen:

    PYTHONPATH=src:. python3 -m benchmarks.gpu_check [--out FOLDER] [--limit SECONDS]

It needs the package's dependencies and pytest, nothing installed. The digest of the conformer's
first weights is recorded beside the outcome of every test marked `gpu`. Past the limit the tests
are ended, and those that were not over are recorded as such.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import seedless
from benchmarks.measure import RESULTS, write_results

LINE = re.compile(r"\] (PASSED|FAILED|ERROR|SKIPPED) (tests/.*)")  # as pytest-xdist prints it


def run_tests(limit: float | None) -> dict[str, str]:
    """Return the outcome of every test, by name; "unfinished" for those the limit cut off."""
    command = [sys.executable, "-m", "pytest", "tests/gpu", "tests/golden", "-p", "no:benchmark"]
    listed = subprocess.run([*command, "--collect-only", "-q"], capture_output=True, text=True)
    names = [line for line in listed.stdout.splitlines() if "::" in line]
    outcomes = dict.fromkeys(names, "unfinished")
    # A line a test: what is known is known even of a run that is cut short.
    tests = subprocess.Popen([*command, "-v", "-n", "12"], stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(limit, tests.kill) if limit else None
    if timer:
        timer.start()
    for line in tests.stdout or ():
        print(line, end="", flush=True)
        found = LINE.search(line)
        if found and found[2].strip() in outcomes:
            outcomes[found[2].strip()] = found[1].lower()
    tests.wait()
    if timer:
        timer.cancel()
    return outcomes


def main() -> None:
    """Run, count, write, and fail where a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=float)
    given = parser.parse_args()
    seedless.settle()
    model = seedless.build("conformer").cuda()
    plan = seedless.initialize(model, "mixed")
    outcomes = run_tests(given.limit)
    results = {
        "conformer_mixed": {"plan": plan.digest, "weights": seedless.digest(model)},
        "tests": dict(Counter(outcomes.values())),
        "gpu_tests": {name: seen for name, seen in outcomes.items() if "gpu" in name},
        "not_passed": {name: seen for name, seen in outcomes.items() if seen != "passed"},
    }
    print(write_results("gpu-check", "python3 -m benchmarks.gpu_check", results, given.out))
    sys.exit(1 if {"failed", "error", "unfinished"} & set(outcomes.values()) else 0)


if __name__ == "__main__":
    main()
