"""What torch's own tools find of the same faults: ``python -m benchmarks.doctor.rival``.

No other tool was found that says why two runs of an unchanged script differ. The nearest is
torch's DebugMode, which logs every operation with hashes and stack traces; here it is helped: the
script is started under it, and the logs of two processes are compared. It notices a fault if the
logs differ, and finds it if the stack of the first call that differs shows a right line. It never
names a cause. Writes benchmarks/results/doctor-rival.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.doctor.catalog import list_pairs
from benchmarks.doctor.check import list_variables, plant, run_script
from benchmarks.doctor.pair import Pair
from benchmarks.measure import write_results
from benchmarks.pages import RESULTS

ENTRY = Path(__file__).with_name("debug_mode_entry.py")


def try_pair(pair: Pair) -> dict[str, Any]:
    """Return what DebugMode finds of one fault."""
    with plant(pair) as (folder, lines):
        calls, place = [], folder.parent
        for number, variables in enumerate(list_variables(pair)):
            out = place / f"calls-{number}"
            out.mkdir()
            command = start_under_debug_mode(pair, place, out)
            run_script(command, folder, variables | shim(place, out))
            calls.append(read_calls(out))
    first = next((both for both in zip(*calls, strict=False) if both[0] != both[1]), None)
    noticed = first is not None or len(calls[0]) != len(calls[1])
    shown = [line for call in first or () for line in call["lines"]]
    return {
        "noticed": noticed,
        "op": first[0]["op"] if first else "",
        "lines": sorted(set(filter(None, shown))),
        "right_line": any(line in lines for line in shown),
    }


def start_under_debug_mode(pair: Pair, place: Path, out: Path) -> str:
    """Return the command to run, on a PATH that has our ``python`` first."""
    command = pair.full_command.replace("{out}", str(place / f"out-{out.name}"))
    return command.replace(" train_ddp.py", f" {ENTRY} {out} train_ddp.py")


def shim(place: Path, out: Path) -> dict[str, str]:
    """Return a PATH on which ``python`` starts a script under DebugMode."""
    folder = place / f"bin-{out.name}"
    folder.mkdir()
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {ENTRY} {out} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


def read_calls(out: Path) -> list[dict[str, Any]]:
    """Return the logged calls of all ranks."""
    files = sorted(out.glob("calls-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def judge(pair: Pair) -> dict[str, Any]:
    """Return what is recorded for one fault, with a note where nothing could be compared."""
    nothing = {"noticed": False, "right_line": False, "lines": [], "op": ""}
    if "--resume-at" in pair.options:
        return {**nothing, "note": "it has no way to compare a resumed run"}
    try:
        return try_pair(pair)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1][:200]
        return {**nothing, "note": f"the script fails under it: {reason}"}


def main() -> None:
    """Try every fault on the CPU that is not recorded yet; write the record after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="pairs whose name contains this, again")
    parser.add_argument("--out", type=Path, default=RESULTS / "doctor-rival.json")
    parser.add_argument("--processes", type=int, default=1, help="pairs at the same time")
    arguments = parser.parse_args()
    out = arguments.out
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["rows"] if out.exists() else {}
    faults = [
        pair
        for pair in list_pairs()
        if pair.causes and arguments.only in pair.name and (arguments.only or pair.name not in rows)
    ]
    with ThreadPoolExecutor(arguments.processes) as pool:
        waiting = {pool.submit(judge, pair): pair.name for pair in faults}
        for done in as_completed(waiting):
            row = rows[waiting[done]] = done.result()
            counts = {
                name: sum(found[name] for found in rows.values())
                for name in ("noticed", "right_line")
            }
            results = {"rows": rows, "faults": len(rows), "counts": counts}
            write_results(out.stem, "python -m benchmarks.doctor.rival", results, out.parent)
            print(f"{waiting[done]}: {row}", flush=True)


if __name__ == "__main__":
    main()
