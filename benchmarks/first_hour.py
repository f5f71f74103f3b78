"""How long a newcomer waits: ``python -m benchmarks.first_hour``. Writes results/first-hour.json.

Two ways begin in an empty folder, with no environment and no cache of ours:

- clone the repository, then `make demo`, to the demo's page;
- build the wheel, install it beside torch, train on arrays of one's own, and verify the run in
  another process.

Packages come from pip's usual place, so the seconds of an installation depend on the network and on
what pip has kept; they are recorded by themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import write_results

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"
OWN_RUN = """
import sys, torch, seedless
X = torch.arange(96 * 4 * 32.0).view(96, 4, 32).sin()
Y = (X.mean((1, 2)) > 0).long()
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 2))
if sys.argv[1] == "fit":
    seedless.fit(net, train=(X, Y), epochs=20, out="mine", progress=False)
else:
    found = seedless.verify("mine", model=net, train=(X, Y))
    assert found.outcome == "identical", found
"""


def take(command: list[str], folder: Path) -> float:
    """Run a command in a folder and return its seconds; one that fails ends the measurement."""
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=clean_environment(folder), check=True)
    return round(time.perf_counter() - began, 1)


def clean_environment(folder: Path) -> dict[str, str]:
    """Return the variables of someone who has installed nothing of ours, and cached nothing."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "SEEDLESS_CACHE": str(folder / "cache")}


def clone_to_page(folder: Path) -> Mapping[str, float]:
    """Return the seconds of each step from a clone to the demo's page."""
    copy = folder / "seedless"
    return {
        "clone": take(["git", "clone", "--quiet", str(ROOT), str(copy)], folder),
        "install": take(["make", ".venv/.demo", f"PYTHON={sys.executable}"], copy),
        "demo": take(["make", "demo"], copy),
    }


def wheel_to_verified_run(folder: Path) -> Mapping[str, float]:
    """Return the seconds of each step from the wheel to a verified run on arrays."""
    (folder / "own.py").write_text(OWN_RUN, encoding="utf-8")
    python = str(folder / "v" / "bin" / "python")
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(ROOT)]
    seconds = {
        "environment": take([sys.executable, "-m", "venv", "v"], folder),
        "build the wheel": take([*wheel, "--wheel-dir", "dist"], folder),
    }
    (file,) = (folder / "dist").glob("*.whl")
    install = [python, "-m", "pip", "install", "--quiet", "--constraint"]
    install += [str(ROOT / "constraints.txt")]
    return {
        **seconds,
        "install torch": take([*install, TORCH], folder),
        "install the wheel": take([*install, str(file)], folder),
        "fit": take([python, "own.py", "fit"], folder),
        "verify, in another process": take([python, "own.py", "verify"], folder),
    }


def main() -> None:
    """Measure both ways and write the record."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        results = {
            "wheel to a verified run, seconds": wheel_to_verified_run(Path(first)),
            "clone to the demo's page, seconds": clone_to_page(Path(second)),
        }
    print(write_results("first-hour", "python -m benchmarks.first_hour", results))


if __name__ == "__main__":
    main()
