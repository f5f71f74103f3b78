"""Compare the digests of portable arithmetic with the committed ones, and record the outcome:

    python -m benchmarks.portable_check [--device cuda] [--full] [--few] [--out FOLDER]

What `seedless portable check --json` prints, with the machine: portable-check-DEVICE.json. --few
computes one op in twelve and no model, to try the command out. Exit code 1: some digests differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import RESULTS, write_results
from seedless.portable.check.compute import OPS, hash_op, read_committed

FEW = 12


def check_few(device: str) -> dict[str, Any]:
    """Return some ops whose digests are not the committed ones."""
    committed = read_committed()["ops"]
    names = sorted(OPS)[::FEW]
    place = torch.device(device)
    differing = [n for n in names if hash_op(n, OPS[n], place) != committed[n]]
    return {"device": device, "differences": differing, "ops": names, "same": not differing}


def check_all(device: str, full: bool) -> dict[str, Any]:
    """Return what the command prints, without the committed digests."""
    command = [sys.executable, "-m", "seedless", "portable", "check", "--device", device, "--json"]
    done = subprocess.run([*command, *["--full"] * full], stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        raise SystemExit(f"error: expected digests from {' '.join(command[1:])}, got none")
    found: dict[str, Any] = json.loads(done.stdout)
    found.pop("shipped")
    return found


def main() -> None:
    """Compare, print the verdict and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.few:
        found, kind = check_few(options.device), "few-"
    else:
        found, kind = check_all(options.device, options.full), ""
    command = f"python -m benchmarks.portable_check --device {options.device}"
    command += " --full" * options.full + " --few" * options.few
    print(found.get("sentence") or found["differences"] or "same")
    name = f"portable-check-{kind}{options.device}"
    print(write_results(name, command, found, options.out))
    raise SystemExit(0 if found["same"] else 1)


if __name__ == "__main__":
    main()
