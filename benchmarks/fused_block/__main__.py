"""Measure the fused block; see the package's docstring.

python -m benchmarks.fused_block --device cuda --out FILE [--only PHASE] [--limit SECONDS]
TRITON_INTERPRET=1 python -m benchmarks.fused_block --small --out FILE
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.fused_block.phases import run_phases
from benchmarks.fused_block.settings import PHASES, Settings
from seedless.numerics.determinism import set_environment_variables


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="small shapes, in the interpreter")
    parser.add_argument("--only", choices=PHASES, action="append", help="a phase; may be repeated")
    parser.add_argument("--limit", type=float, default=460.0, help="seconds for new rows")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.small and os.environ.get("TRITON_INTERPRET") != "1":
        parser.error("--small runs in Triton's interpreter: set TRITON_INTERPRET=1")
    set_environment_variables()
    device = "cpu" if arguments.small else arguments.device
    settings = Settings(device, arguments.small, arguments.limit)
    run_phases(settings, arguments.only or PHASES, arguments.out)


if __name__ == "__main__":
    main()
