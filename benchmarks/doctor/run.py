"""Give each pair to the real ``seedless doctor`` and record what it said.

The record is written after every pair, and all of its rows come from one version of the doctor, of
torch and of Python: a run that was ended goes on where it stopped, and after a change it begins
anew. ``--only`` judges pairs again, whether they are recorded or not. A fault that changed nothing
when it was checked without the doctor is left out, and the record says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.doctor.catalog import list_pairs
from benchmarks.doctor.check import locate_record, make_environment, plant, read_checked
from benchmarks.doctor.pair import Pair, digest_pair
from benchmarks.measure import write_results
from benchmarks.pages import RESULTS, ROOT

ANSWERS = ("identical", "step", "what", "op", "line", "cause", "confidence", "remedy")
MAX_SECONDS = 600
JUDGED = ("audit/doctor", "script_recorder")  # what the answers depend on


def judge_pair(pair: Pair) -> dict[str, Any]:
    """Return what the doctor said of a pair, what was right, and whether they agree."""
    with plant(pair) as (folder, lines):
        start = time.perf_counter()
        code, answer, errors = ask_doctor(pair, folder)
        seconds = time.perf_counter() - start
    row: dict[str, Any] = {name: answer.get(name) for name in ANSWERS}
    row |= {"exit": code, "seconds": round(seconds, 1), "causes": list(pair.causes)}
    row |= {"lines": lines, "command": describe_command(pair), **describe_version(pair)}
    row["verdict"] = compare_answer(pair, lines, code, answer)
    if row["verdict"] != "right":
        row["evidence"] = list(answer.get("evidence", []))[:12]
    if errors and code not in (0, 1):
        row["errors"] = errors
    return row


def describe_version(pair: Pair) -> dict[str, str]:
    """Return what an answer depends on: the pair, the doctor's source, torch and Python."""
    return {
        "pair": digest_pair(pair),
        "source": digest_source(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


@cache
def digest_source() -> str:
    """Return a digest of the doctor's and the recorder's source: which version gave an answer."""
    digest = hashlib.sha256()
    for room in JUDGED:
        for path in sorted((ROOT / "src" / "seedless" / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def describe_command(pair: Pair) -> str:
    """Return the command of the doctor, as a user would type it."""
    return " ".join(["seedless doctor", *pair.options, "--", pair.full_command])


def ask_doctor(pair: Pair, folder: Path) -> tuple[int, Mapping[str, Any], str]:
    """Return the exit code, the answer and the last errors of ``seedless doctor --json``."""
    command = [sys.executable, "-m", "seedless", "doctor", "--json", *pair.options]
    environment = make_environment()
    paths = [str(ROOT / "src"), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    try:
        done = subprocess.run(
            [*command, "--", *shlex.split(pair.full_command)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return -1, {}, f"no answer after {MAX_SECONDS} seconds"
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    return done.returncode, answer, clean_errors(done.stderr[-1500:], folder)


def clean_errors(text: str, folder: Path) -> str:
    """Return the end of a program's errors without the paths of this machine."""
    text = text.replace(f"{folder}/", "").replace(f"{ROOT}/", "")
    return re.sub(r"/\S*/", "", text).strip()[-600:]


def compare_answer(pair: Pair, lines: list[str], code: int, answer: Mapping[str, Any]) -> str:
    """Return "right", or what is wrong with an answer."""
    if code not in (0, 1) or "identical" not in answer:
        return "no answer"
    if not pair.causes:
        return "right" if answer["identical"] else "false alarm"
    if answer["identical"]:
        return "not found"
    if answer["cause"] not in pair.causes:
        return "wrong cause"
    return "right" if answer["line"] in lines else "wrong line"


def count_verdicts(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many faults were named rightly and how many clean pairs gave a false alarm."""
    faults = [row for row in rows.values() if row["causes"]]
    clean = [row for row in rows.values() if not row["causes"]]
    return {
        "faults": len(faults),
        "right": sum(row["verdict"] == "right" for row in faults),
        "right_cause": sum(row["verdict"] in ("right", "wrong line") for row in faults),
        "fault_verdicts": dict(Counter(row["verdict"] for row in faults)),
        "clean": len(clean),
        "clean_right": sum(row["verdict"] == "right" for row in clean),
        "false_alarms": sum(row["verdict"] == "false alarm" for row in clean),
    }


def read_rows(file: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a record, none where there is no record."""
    if not file.exists():
        return {}
    rows: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["results"][
        "rows"
    ]
    return rows


def list_excluded(pairs: Mapping[str, Pair], checked: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the faults that changed nothing on this machine when they were checked."""
    return sorted(
        name
        for name, pair in pairs.items()
        if pair.causes and checked.get(name, {}).get("found") == "identical"
    )


def keep_current(
    rows: Mapping[str, dict[str, Any]], pairs: Mapping[str, Pair]
) -> dict[str, dict[str, Any]]:
    """Return the rows of pairs, doctor, torch and Python as they are now."""
    return {
        name: row
        for name, row in rows.items()
        if name in pairs and describe_version(pairs[name]).items() <= row.items()
    }


def put_longest_first(
    pairs: Iterable[Pair], recorded: Mapping[str, Mapping[str, Any]]
) -> list[Pair]:
    """Return the pairs with those that took longest first, so that none is left for the end.

    A pair that was never timed counts as long as the longest of its script, or longer than all.
    """
    by_script: dict[str, float] = {}
    for name, row in recorded.items():
        script = name.split("/")[0]
        by_script[script] = max(row["seconds"], by_script.get(script, 0.0))

    def expect_seconds(pair: Pair) -> float:
        if pair.name in recorded:
            return float(recorded[pair.name]["seconds"])
        return by_script.get(pair.script, float("inf"))

    return sorted(pairs, key=expect_seconds, reverse=True)


def main() -> int:
    """Judge the pairs, write the record, print each verdict."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.doctor", description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="default: results/doctor.json")
    parser.add_argument("--only", default="", help="pairs whose name contains this, again")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=int, default=1, help="pairs at the same time")
    parser.add_argument("--checked", type=Path, help="default: results/doctor-check.json")
    arguments = parser.parse_args()
    committed = RESULTS / ("doctor.json" if arguments.device == "cpu" else "doctor-gpu.json")
    out = arguments.out or committed
    command = f"python -m benchmarks.doctor --device {arguments.device}"

    # [Step 1] Leave out what is no fault on this machine.
    checked = read_checked(arguments.checked or locate_record(arguments.device), arguments.device)
    pairs = {pair.name: pair for pair in list_pairs(arguments.device)}
    excluded = list_excluded(pairs, checked)
    pairs = {name: pair for name, pair in pairs.items() if name not in excluded}

    # [Step 2] What this version has judged already.
    rows = keep_current(read_rows(out), pairs)
    wanted = [
        pair
        for pair in pairs.values()
        if arguments.only in pair.name and (arguments.only or pair.name not in rows)
    ]

    # [Step 3] Judge the others, and write after each.
    with ThreadPoolExecutor(arguments.processes) as pool:
        ordered = put_longest_first(wanted, read_rows(committed))
        waiting = {pool.submit(judge_pair, pair): pair for pair in ordered}
        for done in as_completed(waiting):
            row = rows[waiting[done].name] = done.result()
            results = {
                "rows": rows,
                "counts": count_verdicts(rows),
                "excluded": excluded,
                "processes": arguments.processes,
            }
            write_results(out.stem, command, results, out.parent)
            said = "identical" if row["identical"] else f"{row['cause']} {row['line']}"
            print(
                f"{row['verdict']:11} {waiting[done].name}: {said} ({row['seconds']:.0f} s)",
                flush=True,
            )
    print(json.dumps(count_verdicts(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
