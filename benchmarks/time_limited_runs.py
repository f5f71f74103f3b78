"""Time-limited runs: as many runs of docs/results as a machine has time for, archived at the end.

    python -m benchmarks.time_limited_runs medmnist --data DATA --store STORE --out OUT
        [--seconds SECONDS] [--seeds N] [--again SECONDS]

One set of worker processes executes the runs of the named studies, in this order and the first
seeds of every arm first, until --seconds are nearly over. A study that is finished by then has its
proofs executed. The finished runs are written to OUT as archives of at most 15 MiB. `seedless
study unpack` puts them into a store on another machine, where `benchmarks.results` tabulates them;
--unpack puts them into the store here the next time. --seeds makes the first seeds of every study
alone, as a stage of it. --again reserves seconds at the end in which every tenth run is executed
again, one after the other.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from benchmarks.results_plan import Entry, choose_tenth, list_entries
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import PROOF, PROOF_FORM, prove_run, read_finding
from seedless.studies.engine.gpu_sharing import share_gpus
from seedless.studies.engine.grid import Point
from seedless.studies.engine.local_workers import (
    list_unfinished,
    order_by_replicate,
    run_local,
    uses_cuda,
)
from seedless.studies.engine.run_archive import RunArchive, unpack_run_archive, write_run_archives
from seedless.studies.engine.store import Store
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

PART_SIZE = 15  # MiB of an archive
ARCHIVE_SECONDS = 45.0  # reserved for writing archives
PROOF_SECONDS = 90.0  # reserved for executing runs again, where a study asks for it


def list_points(entries: Sequence[Entry]) -> list[Point]:
    """Return the runs of all entries, each once, study by study."""
    grids = [open_study(entry.study).plan(entry.options).grid for entry in entries]
    points = [point for grid in grids for point in order_by_replicate(grid.points)]
    return list({point.key: point for point in points}.values())


def prove_entry(entry: Entry, store: Store) -> None:
    """Execute one run of each arm again, all at the same time; the tables read what was found."""
    grid = open_study(entry.study).plan(entry.options).grid
    first = {(p.block, p.arm): p for p in reversed(grid.points) if store.read(p).ok}
    with ThreadPoolExecutor(len(first) or 1) as pool:
        list(pool.map(prove_run, [store.run_folder(point) for point in first.values()]))


def execute_again(points: Sequence[Point], store: Store, until: float) -> int:
    """Execute every tenth run again that is finished, as long as there is time; return how many.

    Runs that were executed again before are not repeated.
    """
    count, longest = 0, 0.0
    for point in choose_tenth(points):
        run = store.run_folder(point)
        began = time.monotonic()
        if store.state(point) != "done" or read_finding(run, PROOF, PROOF_FORM) is not None:
            continue
        if began + 1.2 * longest > until:
            break
        found = prove_run(run)
        longest, count = max(longest, time.monotonic() - began), count + 1
        print(f"{point.key} {point.label}: {found['outcome']}", flush=True)
    return count


def time_run(entry: Entry, store: Store) -> str:
    """Return the seconds a run of an entry spent on its epochs, the median over those done."""
    done = [point for point in list_points([entry]) if store.state(point) == "done"]
    logs = [read_log(store.run_folder(point) / LOG) for point in done]
    seconds = [sum(line["seconds"] for line in log) for log in logs]
    return f"{statistics.median(seconds):.1f} s" if seconds else "no seconds"


def write_archives(entries: Sequence[Entry], store: Store, out: Path) -> list[RunArchive]:
    """Write the finished runs; models that are tested on other datasets keep their weights."""
    written: list[RunArchive] = []
    for weights in (False, True):
        chosen = [entry for entry in entries if bool(entry.options.other) == weights]
        points = list_points(chosen)
        if any(store.state(point) in ("done", "failed") for point in points):
            name = "-".join(entry.slug for entry in chosen)
            written += write_run_archives(
                store,
                points,
                out / f"{name}.tar.xz",
                weights=weights,
                part_size=PART_SIZE,
                force=True,
            )
    return written


def run_entries(
    entries: Sequence[Entry],
    store: Store,
    out: Path,
    seconds: float,
    at_once: int | None = None,
    again: float = 0.0,
) -> bool:
    """Execute, prove and archive as many runs as there is time for; return whether all are done.

    ``again``: how many of the seconds are left for executing every tenth run again.
    """
    began = time.monotonic()
    points = list_points(entries)
    reserved = ARCHIVE_SECONDS + again
    reserved += PROOF_SECONDS if any(entry.options.prove for entry in entries) else 0.0
    at_once = at_once or max(entry.at_once for entry in entries)
    printed = [0.0]

    def watch() -> None:
        if time.monotonic() - printed[0] > 15:
            printed[0] = time.monotonic()
            states = Counter(store.state(point) for point in points)
            print(f"{printed[0] - began:5.0f} s  {dict(sorted(states.items()))}", flush=True)

    if points:
        with share_gpus(at_once, on_cuda=uses_cuda(points), say=print):
            limit = max(1.0, seconds - reserved - (time.monotonic() - began))
            run_local(store, points, runs_per_device=at_once, limit=limit, watch=watch)
    whole = True
    for entry in entries:
        left = len(list_unfinished(store, list_points([entry])))
        if entry.options.prove and not left:
            prove_entry(entry, store)
        whole = whole and not left
        passed = time.monotonic() - began
        text = f"{left} runs are left, {time_run(entry, store)} of epochs a run"
        print(f"{passed:5.0f} s  {entry.slug}: {text}", flush=True)
    if again:
        count = execute_again(points, store, began + seconds - ARCHIVE_SECONDS)
        print(f"{time.monotonic() - began:5.0f} s  executed again: {count} runs", flush=True)
    for archive in write_archives(entries, store, out):
        print(f"{archive.file}: {archive.runs} runs, {archive.size:,} bytes", flush=True)
    print(f"{time.monotonic() - began:5.0f} s in all", flush=True)
    return whole


def main() -> None:
    """Execute the runs of the named entries; exit code 3 where runs are left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("slugs", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--at-once", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--again", type=float, default=0.0)
    parser.add_argument("--unpack", type=Path, nargs="*", default=())
    arguments = parser.parse_args()
    set_environment_variables()
    known = {entry.slug: entry for entry in list_entries(arguments.data)}
    unknown = [slug for slug in arguments.slugs if slug not in known]
    if unknown:
        raise SystemExit(f"error: expected of {', '.join(known)}, got {', '.join(unknown)}")
    store = Store(arguments.store)
    for file in arguments.unpack:
        print(file, unpack_run_archive(file, store))
    entries = [known[slug] for slug in arguments.slugs]
    if arguments.seeds is not None:
        fewer = {"seeds": arguments.seeds}
        entries = [replace(one, options=replace(one.options, **fewer)) for one in entries]
    arguments.out.mkdir(parents=True, exist_ok=True)
    whole = run_entries(
        entries, store, arguments.out, arguments.seconds, arguments.at_once, arguments.again
    )
    raise SystemExit(0 if whole else 3)


if __name__ == "__main__":
    main()
