"""Time-limited runs: as many runs of docs/results as a machine has time for, archived as they end.

    python -m benchmarks.time_limited_runs NAME[:N]... --data DATA --store STORE --out OUT
        [--seconds SECONDS] [--seeds N] [--again SECONDS] [--archive-every SECONDS]

One set of worker processes executes the runs of the named studies, in this order and the first
seeds of every arm first, until --seconds are nearly over. NAME:N makes the first N seeds alone, as
a stage of that study; --seeds does so for every study. A study that is finished by then has its
proofs executed. The finished runs are written to OUT as archives of at most 15 MiB: at the end,
and with --archive-every also while they are executed, each run once. `seedless study unpack` puts
them into a store on another machine, where `benchmarks.results` tabulates them; --unpack puts them
into the store here the next time, and --elsewhere names a file with the keys of runs that another
store has, one a line: they are not executed here. --again reserves seconds at the end in which
every tenth run is executed again, --again-at-once of them at a time. --scale smoke --device cpu
tries a command out: other runs, in seconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.archive_parts import Written, list_points, write_part
from benchmarks.device_repeats import repeat_beside
from benchmarks.results_plan import Entry, choose_tenth, list_entries
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import PROOF, PROOF_FORM, prove_run, read_finding
from seedless.studies.engine.gpu_sharing import share_gpus
from seedless.studies.engine.grid import Point
from seedless.studies.engine.local_workers import list_unfinished, run_local, uses_cuda
from seedless.studies.engine.run_archive import unpack_run_archive
from seedless.studies.engine.store import Store
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

ARCHIVE_SECONDS = 45.0  # reserved for writing archives
PROOF_SECONDS = 90.0  # reserved for executing runs again, where a study asks for it


@dataclass(frozen=True)
class Limits:
    """How long runs are executed, and how many at once.

    Attributes:
        seconds: in all, archives included.
        at_once: runs at the same time; None for the largest number that an entry has.
        again: how many of the seconds are left for executing every tenth run again.
        again_at_once: how many of them at the same time.
        archive_every: seconds between two archives; None for archives at the end alone.
    """

    seconds: float = 540.0
    at_once: int | None = None
    again: float = 0.0
    again_at_once: int = 1
    archive_every: float | None = None


def prove_entry(entry: Entry, store: Store) -> None:
    """Execute one run of each arm again, all at the same time; the tables read what was found."""
    grid = open_study(entry.study).plan(entry.options).grid
    first = {(p.block, p.arm): p for p in reversed(grid.points) if store.read(p).ok}
    with ThreadPoolExecutor(len(first) or 1) as pool:
        list(pool.map(prove_run, [store.run_folder(point) for point in first.values()]))


def execute_again(points: Sequence[Point], store: Store, until: float, at_once: int = 1) -> int:
    """Execute every tenth run again that is finished, as long as there is time; return how many.

    Runs that were executed again before are not repeated.
    """
    longest = [0.0]

    def execute(point: Point) -> bool:
        run = store.run_folder(point)
        began = time.monotonic()
        if store.state(point) != "done" or read_finding(run, PROOF, PROOF_FORM) is not None:
            return False
        if began + 1.2 * longest[0] > until:
            return False
        found = prove_run(run)
        longest[0] = max(longest[0], time.monotonic() - began)
        print(f"{point.key} {point.label}: {found['outcome']}", flush=True)
        return True

    with ThreadPoolExecutor(at_once) as pool:
        return sum(pool.map(execute, choose_tenth(points)))


def time_run(entry: Entry, store: Store) -> str:
    """Return the seconds a run of an entry spent on its epochs, the median over those done."""
    done = [point for point in list_points([entry]) if store.state(point) == "done"]
    logs = [read_log(store.run_folder(point) / LOG) for point in done]
    seconds = [sum(line["seconds"] for line in log) for log in logs]
    return f"{statistics.median(seconds):.1f} s" if seconds else "no seconds"


def run_entries(
    entries: Sequence[Entry],
    store: Store,
    out: Path,
    limits: Limits,
    data: Path | None = None,
    elsewhere: Collection[str] = (),
) -> bool:
    """Execute, prove and archive as many runs as there is time for; return whether all are done.

    ``out``: the name of the archives without an end. ``data``: the folder that the entries read;
    what a GPU adds to the spread is measured beside the runs only where it is given.
    ``elsewhere``: the keys of runs that another store has.
    """
    began = time.monotonic()
    points = [point for point in list_points(entries) if point.key not in elsewhere]
    reserved = ARCHIVE_SECONDS + limits.again
    reserved += PROOF_SECONDS if any(entry.options.prove for entry in entries) else 0.0
    at_once = limits.at_once or max(entry.at_once for entry in entries)
    printed, archived = [0.0], [began]
    written: Written = {}

    def archive(*, last: bool = False) -> None:
        name = out.with_name(f"{out.name}-{len(archived)}")
        for one in write_part(entries, store, name, written, last=last):
            print(f"{one.file}: {one.runs} runs, {one.size:,} bytes", flush=True)
        archived.append(time.monotonic())

    def watch() -> None:
        if time.monotonic() - printed[0] > 15:
            printed[0] = time.monotonic()
            states = Counter(store.state(point) for point in points)
            print(f"{printed[0] - began:5.0f} s  {dict(sorted(states.items()))}", flush=True)
        every = limits.archive_every
        if every is not None and time.monotonic() - archived[-1] > every:
            archive()

    if points:
        # Archives are written before the service that shares the GPU is ended, which may take long.
        with (
            share_gpus(at_once, on_cuda=uses_cuda(points), say=print),
            repeat_beside(entries, data, store),
        ):
            limit = max(1.0, limits.seconds - reserved - (time.monotonic() - began))
            run_local(store, points, runs_per_device=at_once, limit=limit, watch=watch)
            if limits.again:
                archive()
                until = began + limits.seconds - ARCHIVE_SECONDS
                count = execute_again(points, store, until, limits.again_at_once)
                passed = time.monotonic() - began
                print(f"{passed:5.0f} s  executed again: {count} runs", flush=True)
            for entry in entries:
                if entry.options.prove and not list_unfinished(store, list_points([entry])):
                    prove_entry(entry, store)
            archive(last=True)
    whole = True
    for entry in entries:
        unfinished = list_unfinished(store, list_points([entry]))
        left = sum(point.key not in elsewhere for point in unfinished)
        whole = whole and not left
        stage = "" if entry.options.seeds is None else f", {entry.options.seeds} seeds"
        text = f"{left} runs are left, {time_run(entry, store)} of epochs a run"
        print(f"{entry.slug}{stage}: {text}", flush=True)
    print(f"{time.monotonic() - began:5.0f} s in all", flush=True)
    return whole


def choose_entries(words: Sequence[str], data: Path, seeds: int | None = None) -> list[Entry]:
    """Return the entries that words such as "main" or "main:10" name, with so many seeds."""
    known = {entry.slug: entry for entry in list_entries(data)}
    entries = []
    for word in words:
        slug, _, count = word.partition(":")
        if slug not in known or (count and not count.isdigit()):
            raise SystemExit(f"error: expected NAME or NAME:N of {', '.join(known)}, got {word}")
        stage = int(count) if count else seeds
        entry = known[slug]
        fewer = entry.options if stage is None else replace(entry.options, seeds=stage)
        entries.append(replace(entry, options=fewer))
    return entries


def main() -> None:
    """Execute the runs of the named entries; exit code 3 where runs are left."""
    usual = Limits()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="runs", help="the first part of the archives' names")
    parser.add_argument("--seconds", type=float, default=usual.seconds)
    parser.add_argument("--at-once", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--again", type=float, default=usual.again)
    parser.add_argument("--again-at-once", type=int, default=usual.again_at_once)
    parser.add_argument("--archive-every", type=float)
    parser.add_argument("--scale")
    parser.add_argument("--device")
    parser.add_argument("--unpack", type=Path, nargs="*", default=())
    parser.add_argument("--elsewhere", type=Path)
    arguments = parser.parse_args()
    set_environment_variables()
    entries = choose_entries(arguments.names, arguments.data, arguments.seeds)
    tried = {"scale": arguments.scale, "device": arguments.device}
    changes = {name: value for name, value in tried.items() if value is not None}
    entries = [replace(one, options=replace(one.options, **changes)) for one in entries]
    store = Store(arguments.store)
    for file in arguments.unpack:
        print(file, unpack_run_archive(file, store))
    limits = Limits(
        arguments.seconds,
        arguments.at_once,
        arguments.again,
        arguments.again_at_once,
        arguments.archive_every,
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    out = arguments.out / arguments.name
    listed = arguments.elsewhere.read_text(encoding="utf-8") if arguments.elsewhere else ""
    whole = run_entries(entries, store, out, limits, arguments.data, listed.split())
    raise SystemExit(0 if whole else 3)


if __name__ == "__main__":
    main()
