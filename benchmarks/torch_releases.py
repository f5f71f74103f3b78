"""Does seedless work with this release of torch? Writes results/torch-releases.json.

    PYTHON -m benchmarks.torch_releases [FOLDER ...]

PYTHON is the interpreter of an environment with that release; `make test-torch` builds one. First
`seedless portable check` compares the arithmetic with the committed digests. Where all agree, the
tests run of what a release can change, or those of the given folders. The record holds one row for
each pair of releases: a new row replaces the older one of the same pair and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import torch

from benchmarks.measure import write_results
from benchmarks.pages import RESULTS, ROOT

NAME = "torch-releases"
FOLDERS = (
    "tests/numerics",
    "tests/golden",
    "tests/train",
    "tests/init",
    "tests/laws",
    "tests/runs",
    "tests/proof",
    "tests/portable",
)
FINISHED = (0, 1)  # pytest's exit codes where every test ran: all passed, or some failed


def run_check() -> dict[str, Any]:
    """Return what `seedless portable check` finds in this interpreter."""
    command = [sys.executable, "-m", "seedless", "portable", "check", "--json"]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    values = json.loads(found.stdout)
    kept = ("same", "sentence", "differences", "fused", "engine")
    return {key: values[key] for key in kept}


def run_tests(folders: Sequence[str]) -> dict[str, Any]:
    """Return how many tests passed, failed and were skipped, with names and reasons."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tests.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={file}", *folders]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code not in FINISHED:
            sys.exit(f"pytest ended with code {code} before all tests ran; nothing was recorded")
        return count_outcomes(ElementTree.parse(file).iter("testcase"))


def count_outcomes(cases: Any) -> dict[str, Any]:
    """Return counts from the cases of a JUnit file; an error in a fixture counts as a failure."""
    outcomes: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    failures, reasons = [], Counter[str]()
    for case in cases:
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcomes["failed"] += 1
            failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif skipped is not None:
            outcomes["skipped"] += 1
            reasons[str(skipped.get("message"))] += 1
        else:
            outcomes["passed"] += 1
    return {**outcomes, "failures": sorted(failures), "reasons to skip": dict(reasons)}


def add_row(row: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write the row into the record, in place of an older row of the same releases."""
    path = folder / f"{NAME}.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else []
    kept = [old for old in rows if (old["torch"], old["python"]) != (row["torch"], row["python"])]
    ordered = sorted([*kept, row], key=lambda each: (each["python"], each["torch"]))
    return write_results(NAME, "python -m benchmarks.torch_releases", ordered, folder)


def main() -> None:
    """Check, test and record; fail where a digest differs or a test fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    folders = list(parser.parse_args().folders)
    check = run_check()
    print(*check["differences"], check["sentence"], sep="\n", flush=True)
    tests = run_tests(folders) if check["same"] else None
    releases = {"torch": str(torch.__version__), "python": platform.python_version()}
    print(add_row({**releases, "portable check": check, "folders": folders, "tests": tests}))
    sys.exit(0 if tests and not tests["failed"] else 1)


if __name__ == "__main__":
    main()
