"""Run the parts of a session, one process each, and write a row for every part:

    PYTHONPATH=src:. python3 -m benchmarks.gpu_session --out FOLDER [--seconds 570]
        [--only PART]... [--done FILE]... [--wheels FOLDER] [--data FOLDER]
    PYTHONPATH=src:. python3 -m benchmarks.gpu_session --out FOLDER --trial
    python -m benchmarks.gpu_session --list
    python -m benchmarks.gpu_session --unpack FILE... [--partial] [--into FOLDER]

FOLDER/session.jsonl has a line for each part that has ended: its command, exit code, seconds, the
end of its output, and its records. FOLDER/running.json is the part that runs, with the records it
has so far; what kills this program leaves both. A part that does not fit into --seconds is not
started; the next call names the file with --done, and runs what has not ended well yet. --trial
runs every part small and on a CPU. --unpack writes the records of parts that ended well to
benchmarks/results; with --partial also of the others, whose records may lack rows. Packages that
are missing are named before anything runs. Exit code 1: a part failed; 3: parts are left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.gpu_session.packages import (
    ROOT,
    explain_missing,
    list_missing,
    list_needed,
    unpack_wheels,
)
from benchmarks.gpu_session.parts import PARTS, Part

LOG, RUNNING = "session.jsonl", "running.json"
SNAPSHOT_SECONDS = 10.0
TRIAL_SECONDS = 400.0  # a CPU may be busy
TAIL = 4000  # characters of a part's output that its row keeps
Row = dict[str, Any]


class Session:
    """Where the rows go, and how long parts may run."""

    def __init__(self, out: Path, until: float, *, trial: bool, data: Path | None) -> None:
        self.out, self.until, self.trial, self.data = out, until, trial, data

    def run(self, part: Part) -> Row:
        """Run a part until it ends or its time is over; write and return its row."""
        with TemporaryDirectory() as folder:
            records, log = Path(folder) / "records", Path(folder) / "output"
            records.mkdir()
            command = fill_in(part.trial if self.trial else part.command, records, self.data)
            limit = TRIAL_SECONDS if self.trial else part.limit
            limit = min(limit, self.until - time.monotonic())
            row: Row = {"part": part.name, "command": command, "trial": self.trial, "limit": limit}
            print(f"{part.name}: {' '.join(command)}", flush=True)
            began = time.monotonic()
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True
                )
                while (left := began + limit - time.monotonic()) > 0:
                    try:
                        process.wait(min(left, SNAPSHOT_SECONDS))
                        break
                    except subprocess.TimeoutExpired:
                        row |= read_so_far(records, log, began)
                        (self.out / RUNNING).write_text(json.dumps(row), encoding="utf-8")
                row["timed_out"] = process.poll() is None
                if row["timed_out"]:  # with the processes that it started
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            row |= {"exit_code": process.returncode, **read_so_far(records, log, began)}
        with (self.out / LOG).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        (self.out / RUNNING).unlink(missing_ok=True)
        return row


def fill_in(command: Sequence[str], records: Path, data: Path | None) -> list[str]:
    """Return a command with Python in front, and folders in place of their words."""
    words = {"OUT": str(records), "DATA": str(data or ""), "PYTHON": sys.executable}
    filled = []
    for text in command:
        first, slash, rest = text.partition("/")
        filled.append(words[first] + slash + rest if first in words else text)
    return [sys.executable, *filled] if command[0].startswith("-") else filled


def read_so_far(records: Path, log: Path, began: float) -> Row:
    """Return the records that a part has written, and the end of its output."""
    found: dict[str, Any] = {}
    for file in sorted(records.glob("*.json")):
        try:
            found[file.name] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:  # it is being written
            continue
    tail = log.read_bytes()[-TAIL:].decode(errors="replace")
    return {"records": found, "output": tail, "seconds": round(time.monotonic() - began, 1)}


def read_rows(files: Sequence[Path]) -> list[Row]:
    """Return the rows of sessions, those of files that a killed one left included."""
    return [
        json.loads(line)
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def has_succeeded(row: Row) -> bool:
    """Return whether a part ended by itself and without an error."""
    return row.get("exit_code") == 0


def explain_refusal(part: Part, session: Session) -> str:
    """Return why a part cannot be started now; "" where it can."""
    if (
        part.data
        and not session.trial
        and not (session.data and (session.data / part.data).exists())
    ):
        return f"needs {part.data} in the folder that --data names"
    if part.program and not session.trial and shutil.which(part.program) is None:
        return f"needs {part.program}, which this machine does not have"
    left = session.until - time.monotonic()
    if left < part.least and not session.trial:
        return f"needs {part.least:.0f} s, {max(left, 0):.0f} s are left"
    return ""


def run_parts(session: Session, parts: Sequence[Part]) -> int:
    """Run parts in turn; return the exit code of the session."""
    failed, left = [], []
    for part in parts:
        refusal = explain_refusal(part, session)
        if refusal:
            left.append(part.name)
            print(f"{part.name}: not started, {refusal}", flush=True)
            continue
        row = session.run(part)
        outcome = "its time was over" if row["timed_out"] else f"exit code {row['exit_code']}"
        print(f"    {outcome}, {row['seconds']} s, {len(row['records'])} records", flush=True)
        if not has_succeeded(row):
            failed.append(part.name)
            print(row["output"][-1500:], flush=True)
    print(f"failed: {', '.join(failed) or 'none'}; left: {', '.join(left) or 'none'}", flush=True)
    return 1 if failed else 3 if left else 0


def unpack(files: Sequence[Path], into: Path, *, partial: bool) -> None:
    """Write the records of rows, the later ones over the earlier."""
    for row in read_rows(files):
        is_whole = has_succeeded(row)
        if row["trial"] or not (is_whole or partial):
            print(
                f"{row['part']}: left out, {'a trial' if row['trial'] else 'it did not end well'}"
            )
            continue
        for name, content in row["records"].items():
            text = json.dumps(content, indent=2, sort_keys=True) + "\n"
            (into / name).write_text(text, encoding="utf-8")
            print(f"{row['part']}: {into / name}{'' if is_whole else ', not all of it'}")


def choose_parts(only: Sequence[str], done: Sequence[Path]) -> list[Part]:
    """Return the named parts, or all, without those that ended well in earlier sessions."""
    known = [part.name for part in PARTS]
    for name in only:
        if name not in known:
            raise SystemExit(f"error: expected --only {', '.join(known)}, got {name}")
    ended = {row["part"] for row in read_rows(done) if has_succeeded(row)}
    return [part for part in PARTS if part.name not in ended and (not only or part.name in only)]


def prepare_packages(wheels: Path | None, to: Path) -> None:
    """Make the packages of wheels importable for the parts; stop where some are still missing."""
    paths = [str(ROOT / "src"), str(ROOT)]
    if wheels is not None:
        unpack_wheels(wheels, to)
        paths.append(str(to))
        sys.path.append(str(to))
    missing = list_missing(list_needed())
    if missing:
        python = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(explain_missing(missing, python))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait leave the cores alone
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *([before] if before else [])])


def main() -> None:
    """Read the arguments and do what was asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=570.0)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--done", type=Path, action="append", default=[])
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--unpack", type=Path, nargs="+")
    parser.add_argument("--partial", action="store_true")
    parser.add_argument("--into", type=Path, default=ROOT / "benchmarks" / "results")
    arguments = parser.parse_args()
    parts = choose_parts(arguments.only, arguments.done)
    if arguments.list:
        for part in parts:
            print(f"{part.name:<17} {part.limit:>4.0f} s  {' '.join(part.command)}")
    elif arguments.unpack:
        unpack(arguments.unpack, arguments.into, partial=arguments.partial)
    elif arguments.out is None:
        parser.error("expected --out FOLDER, --list or --unpack FILE")
    else:
        until = time.monotonic() + arguments.seconds
        arguments.out.mkdir(parents=True, exist_ok=True)
        data = arguments.data.resolve() if arguments.data else None
        with TemporaryDirectory() as folder:
            prepare_packages(arguments.wheels, Path(folder))
            session = Session(arguments.out, until, trial=arguments.trial, data=data)
            code = run_parts(session, parts)
        raise SystemExit(code)


if __name__ == "__main__":
    main()
