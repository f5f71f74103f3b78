"""Training by several processes: the same bits for every world, and what a step costs.

    python -m benchmarks.world devices [--out FOLDER]
    python -m benchmarks.world cost [--sizes 1 2 4] [--samples 256] [--rounds 5] [--out FOLDER]
    python -m benchmarks.world traffic [--out FOLDER]
    python -m benchmarks.world page

`devices` trains each model in worlds of CPUs, of GPUs, and of both, and compares digests. `cost`
times a step of one batch by several CPU processes of one thread each, in portable arithmetic and by
torch's DistributedDataParallel, in turns. `traffic` counts what full-size models send. Each writes
world-COMMAND.json; `page` writes docs/explanation/scale.md from them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.measure import RESULTS
from benchmarks.world.cost import measure_cost
from benchmarks.world.devices import compare_devices
from benchmarks.world.page import write_page
from benchmarks.world.traffic import count_traffic


def main() -> None:
    """Read the arguments and do what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["devices", "cost", "traffic", "page"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.what == "cost":
        measure_cost(arguments.sizes, arguments.samples, arguments.rounds, arguments.out)
    elif arguments.what == "traffic":
        count_traffic(arguments.out)
    elif arguments.what == "page":
        print(write_page())
    elif not compare_devices(arguments.out):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
