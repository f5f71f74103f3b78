"""Run a script under torch's DebugMode: ``python debug_mode_entry.py OUT script.py ARGS``.

Writes one JSON line for each call that DebugMode logged: the op, its hashes, and the innermost line
of the script's own folder in the stack of the call, and in that of the forward call.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import runpy
import sys
from pathlib import Path

from torch.utils._debug_mode import DebugMode


def find_line(stack: str | None) -> str:
    """Return the innermost line of the script's own folder in a stack trace."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', stack or "")
    own = [(file, line) for file, line in frames if Path(file).resolve().parent == Path.cwd()]
    return f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""


def write_calls(mode: DebugMode, out: Path) -> None:
    """Write every call that was logged."""
    rank = os.environ.get("RANK", "0")
    with (out / f"calls-{rank}.jsonl").open("w", encoding="utf-8") as file:
        for call in mode.logs:
            stacks = (getattr(call, "stack_trace", ""), getattr(call, "fwd_stack_trace", ""))
            name = str(getattr(call, "op", type(call).__name__))
            hashes = repr((call.log or {}).get("hash"))
            row = {"op": name, "hash": hashes, "lines": [find_line(stack) for stack in stacks]}
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Run the script named on the command line."""
    out, sys.argv = Path(sys.argv[1]), sys.argv[2:]
    sys.path[0] = os.getcwd()
    mode = DebugMode(record_stack_trace=True)
    atexit.register(write_calls, mode, out)
    with mode, DebugMode.log_tensor_hashes("hash_tensor"):
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
