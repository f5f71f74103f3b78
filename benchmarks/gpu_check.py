"""Run the tests of a CUDA device and of the committed digests there, and record what was seen:

    PYTHONPATH=src:. python3 -m benchmarks.gpu_check [--out FOLDER]

It needs the package's dependencies and pytest, nothing installed. The digest of the conformer's
first weights is recorded beside the outcome of every test marked `gpu`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import seedless
from benchmarks.measure import RESULTS, write_results


def run_tests() -> dict[str, str]:
    """Return the outcome of every test, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.xml"
        # A line a test, so that something is known even of a run that is cut short.
        options = ["-v", "-n", "8", "-p", "no:benchmark", f"--junit-xml={report}"]
        places = ["tests/gpu", "tests/golden"]
        subprocess.run([sys.executable, "-m", "pytest", *places, *options])
        cases = ElementTree.parse(report).iter("testcase")
        return {
            f"{case.get('classname')}::{case.get('name')}": case[0].tag if len(case) else "passed"
            for case in cases
        }


def main() -> None:
    """Run, count, write, and fail where a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    folder = parser.parse_args().out
    seedless.settle()
    model = seedless.build("conformer").cuda()
    plan = seedless.initialize(model, "mixed")
    outcomes = run_tests()
    results = {
        "conformer_mixed": {"plan": plan.digest, "weights": seedless.digest(model)},
        "tests": dict(Counter(outcomes.values())),
        "gpu_tests": {name: seen for name, seen in outcomes.items() if "gpu" in name},
        "not_passed": {name: seen for name, seen in outcomes.items() if seen != "passed"},
    }
    print(write_results("gpu-check", "python3 -m benchmarks.gpu_check", results, folder))
    sys.exit(1 if {"failure", "error"} & set(outcomes.values()) else 0)


if __name__ == "__main__":
    main()
