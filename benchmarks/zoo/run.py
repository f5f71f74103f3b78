"""Ask every network of the zoo for its columns.

    python -m benchmarks.zoo [--only PATTERN] [--columns init,portable] [--out FILE]
                             [--processes 1] [--limit 120]
    python -m benchmarks.zoo --device cuda --compare FILE --out FILE

The record is written after every network; one that was recorded before is asked for the columns
that it does not have yet. With --device, two portable steps are taken there and the digest is
compared with that of FILE. A network that takes more than --limit seconds of processor time for a
column, or ends its process, is recorded so. benchmarks/zoo/constraints.txt has the versions of the
libraries.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.pages import RESULTS, ROOT

LIBRARIES = (
    *("torch", "timm", "transformers", "torchvision", "monai"),
    *("segmentation-models-pytorch", "torch-ecg"),
)
CPU_COLUMNS = ("init", "convert", "portable", "threads", "plain", "float64")
MAX_ERROR_LENGTH = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the zoo and write its record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo")
    parser.add_argument("--only", default="*", help="a shell pattern of names, such as timm/*")
    parser.add_argument("--columns", default=",".join(CPU_COLUMNS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compare", type=Path, help="a record of the CPU, for --device")
    parser.add_argument("--out", type=Path, default=RESULTS / "zoo.json")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--limit", type=int, default=120, help="seconds of processor time for a column"
    )
    options = parser.parse_args(arguments)
    from benchmarks.zoo.catalog import find_networks

    columns = options.columns.split(",") if options.device == "cpu" else [options.device]
    unknown = set(columns) - {*CPU_COLUMNS, options.device}
    if unknown:
        parser.error(f"expected columns of {', '.join(CPU_COLUMNS)}; got {', '.join(unknown)}")
    names = find_networks(options.only)
    if not names:
        parser.error(f"no network matches --only {options.only!r}")
    record = read_record(options.out)
    expected = {} if options.compare is None else read_record(options.compare)["results"]
    if expected:  # only what ran on the CPU can be compared
        names = [name for name in names if "digest" in expected.get(name, {}).get("portable", {})]
    tasks = [
        (name, missing)
        for name in names
        if (missing := [c for c in columns if c not in record["results"].get(name, {})])
    ]
    for done, (name, answers) in enumerate(run_tasks(tasks, options), 1):
        if options.device in answers:
            answers[options.device] |= compare(answers[options.device], expected.get(name))
        record["results"].setdefault(name, {}).update(answers)
        write_record(options.out, record)
        print(f"{done}/{len(tasks)} {name}: {summarize(answers)}", flush=True)
    return 0


def read_record(path: Path) -> dict[str, Any]:
    """Return the record in a file, or a new one without rows."""
    if path.exists():
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record
    return {"command": "", "environment": {}, "libraries": {}, "results": {}}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write the record with what made it, first to a temporary name."""
    from seedless.numerics.environment import capture_environment

    record["command"] = f"python -m benchmarks.zoo --out {path.name}"
    record["environment"] = capture_environment()
    record["libraries"] = {name: find_version(name) for name in LIBRARIES}
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)


def find_version(library: str) -> str | None:
    """Return the installed version of a library, or None."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def compare(answer: dict[str, Any], expected: dict[str, Any] | None) -> dict[str, Any]:
    """Return whether start and digest of an answer are those of the CPU's row."""
    there = (expected or {}).get("portable", {})
    if "digest" not in there or "digest" not in answer:
        return {}
    return {
        "same start": answer["start"] == there["start"],
        "same": answer["digest"] == there["digest"],
    }


def summarize(answers: dict[str, Any]) -> str:
    """Return one line: each column with its error, or with its short values."""
    parts = []
    for column, answer in answers.items():
        if "error" in answer:
            parts.append(f"{column} {answer['error'][:90]!r}")
            continue
        shown = {
            key: round(value, 4) if isinstance(value, float) else value
            for key, value in answer.items()
            if isinstance(value, bool | int | float)
        }
        parts.append(f"{column} {shown}")
    return "; ".join(parts)


def run_tasks(tasks: list[tuple[str, list[str]]], options: argparse.Namespace) -> Any:
    """Yield (name, answers) of every task, from worker processes that are replaced if they end."""
    context = get_context("spawn")
    waiting = list(reversed(tasks))
    workers: dict[Connection, tuple[Any, str]] = {}

    def give_task(connection: Connection, process: Any) -> None:
        if waiting:
            name, columns = waiting.pop()
            connection.send((name, columns))
            workers[connection] = process, name
        else:
            connection.send(None)
            process.join()

    def start_worker() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, options.device, options.limit))
        process.start()
        theirs.close()
        give_task(ours, process)

    for _ in range(min(options.processes, len(tasks))):
        start_worker()
    while workers:
        for ready in wait(list(workers)):
            assert isinstance(ready, Connection)
            process, name = workers.pop(ready)
            try:
                answers = ready.recv()
            except EOFError:  # a crash, or memory that ran out
                process.join()
                error = {"error": f"the process ended with code {process.exitcode}"}
                yield name, dict.fromkeys(dict(tasks)[name], error)
                if waiting:
                    start_worker()
                continue
            give_task(ready, process)
            yield name, answers


def work(connection: Connection, device: str, limit: int) -> None:
    """Answer tasks of (name, columns) until there are no more."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    while (task := connection.recv()) is not None:
        name, columns = task
        connection.send({column: answer(name, column, device, limit) for column in columns})


class TooSlowError(Exception):
    """A column took longer than its limit."""


def answer(name: str, column: str, device: str, limit: float) -> dict[str, Any]:
    """Return the answer of one network for one column, or its error."""
    from benchmarks.zoo.catalog import NETWORKS
    from benchmarks.zoo.columns import COLUMNS, answer_portable

    def stop(*_: Any) -> None:
        raise TooSlowError(f"more than {limit} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.monotonic()
    try:
        if column == device:
            found = answer_portable(NETWORKS[name], device)
        else:
            found = COLUMNS[column](NETWORKS[name])
    except Exception as error:  # what the libraries raise is recorded, whatever it is
        text = f"{type(error).__name__}: {error}"
        found = {"error": text[:MAX_ERROR_LENGTH]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    found = json.loads(remove_paths(json.dumps(found)))
    return found | {"wall": time.monotonic() - start}


def remove_paths(text: str) -> str:
    """Return a text without the places where this machine keeps libraries and this package."""
    text = re.sub(r"/[^\s\"]*/(site|dist)-packages/", "", text).replace(f"{ROOT}/", "")
    for folder in sorted(filter(os.path.isabs, sys.path), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    return text
