"""Make every attack of tests/attack and record what came of it: ``python -m benchmarks.attacks``.

Writes results/attacks.json: for each attack the verdict, the exit code, the peak memory of the
program and its workers, and the seconds it took. ``--processes``: how many are made at a time.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import write_results
from tests.attack.attack import PASSED, Attack
from tests.attack.catalog import list_all
from tests.attack.runner import Outcome, Server, make_attack
from tests.attack.victims import make_victims


def make_all(folder: Path, processes: int) -> dict[Attack, Outcome]:
    """Return what came of each attack, in the order of the catalog."""
    # [Step 1] One server for each attack that is made at the same time, and the victims.
    servers = [Server(folder / f"server-{number}") for number in range(processes)]
    free: SimpleQueue[Server] = SimpleQueue()
    for server in servers:
        free.put(server)
    make_victims(folder / "victims", servers[0])
    attacks = list_all(folder / "victims")

    # [Step 2] Whoever is free makes the next attack, in a sandbox of its own.
    def make(number: int) -> Outcome:
        server = free.get()
        try:
            return make_attack(attacks[number], folder / "victims", server, folder / str(number))
        finally:
            free.put(server)

    with ThreadPoolExecutor(processes) as pool:
        outcomes = list(pool.map(make, range(len(attacks))))
    for server in servers:
        server.close()
    return dict(zip(attacks, outcomes, strict=True))


def summarize(outcomes: dict[Attack, Outcome]) -> dict[str, Any]:
    """Return counts by verdict and by family, the extremes, and a line for each attack."""
    found = outcomes.values()
    return {
        "attacks": len(outcomes),
        "families": Counter(attack.family for attack in outcomes),
        "verdicts": Counter(outcome.verdict for outcome in found),
        "most_megabytes": round(max(outcome.megabytes for outcome in found)),
        "most_seconds": round(max(outcome.seconds for outcome in found), 1),
        "passed": {
            attack.name: attack.reason
            for attack, outcome in outcomes.items()
            if outcome.verdict in PASSED
        },
        "problems": {
            attack.name: list(outcome.problems)
            for attack, outcome in outcomes.items()
            if outcome.problems
        },
        "each": {attack.name: describe(outcome) for attack, outcome in outcomes.items()},
    }


def describe(outcome: Outcome) -> str:
    """Return one line: verdict, exit code, peak memory and seconds."""
    return (
        f"{outcome.verdict}, exit {outcome.code}, {outcome.megabytes:.0f} MB, "
        f"{outcome.seconds:.1f} s"
    )


def main() -> int:
    """Make the attacks, write the record, and return 1 if one of them was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="attacks at the same time")
    processes = parser.parse_args().processes
    with TemporaryDirectory() as folder:
        results = summarize(make_all(Path(folder), processes))
    print(write_results("attacks", "python -m benchmarks.attacks", results))
    for name, problems in results["problems"].items():
        print(f"{name}: {'; '.join(problems)}")
    return 1 if results["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
