"""One sitting at a machine whose time is limited: make runs of docs/results, carry them off.

    python3 -m benchmarks.sitting medmnist --data DATA --store STORE --out OUT --seconds 540

Runs of the studies named, in this order and with the first seeds of every arm first, are made by
one set of worker processes until the seconds are nearly over; a study that is whole by then has its
proofs made. What is done goes into OUT as files of at most 15 MiB, which `seedless study unpack`
puts into a store elsewhere, where `benchmarks.results` tabulates it, or --unpack here next time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.results_plan import Entry, list_entries
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.catalog import open_study
from seedless.studies.engine.grid import Point
from seedless.studies.engine.local_workers import list_unfinished, order_by_replicate, run_local
from seedless.studies.engine.proofs import prove_run
from seedless.studies.engine.run_archive import RunArchive, unpack_run_archive, write_run_archives
from seedless.studies.engine.store import Store
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

PART = 15  # MiB a file
END = 45.0  # seconds kept for packing
PROOF = 90.0  # and for executing runs again, where a study asks for it


def list_points(entries: Sequence[Entry]) -> list[Point]:
    """Return the runs of all entries, each once, study by study."""
    points = [
        p for e in entries for p in order_by_replicate(open_study(e.study).plan(e.options).points)
    ]
    return list({point.key: point for point in points}.values())


def prove_entry(entry: Entry, store: Store) -> None:
    """Execute again what a study's proofs need, side by side; its table then finds the verdicts."""
    grid = open_study(entry.study).plan(entry.options)
    first = {(p.block, p.arm): p for p in reversed(grid.points) if store.read(p).ok}
    with ThreadPoolExecutor(len(first) or 1) as pool:
        list(pool.map(prove_run, [store.place(point) for point in first.values()]))


def time_run(entry: Entry, store: Store) -> str:
    """Return the seconds a run of an entry spent on its epochs, the median over those done."""
    done = [point for point in list_points([entry]) if store.state(point) == "done"]
    logs = [read_log(store.place(point) / LOG) for point in done]
    seconds = [sum(line["seconds"] for line in log) for log in logs]
    return f"{statistics.median(seconds):.1f} s" if seconds else "no seconds"


def pack(entries: Sequence[Entry], store: Store, out: Path) -> list[RunArchive]:
    """Write what is done; models that are to be tried on other sets take their weights along."""
    written: list[RunArchive] = []
    for weights in (False, True):
        chosen = [entry for entry in entries if bool(entry.options.other) == weights]
        points = list_points(chosen)
        if any(store.state(point) in ("done", "failed") for point in points):
            name = "-".join(entry.slug for entry in chosen)
            written += write_run_archives(
                store, points, out / f"{name}.tar.xz", weights=weights, part_size=PART, force=True
            )
    return written


def hold(
    entries: Sequence[Entry], store: Store, out: Path, seconds: float, at_once: int | None = None
) -> bool:
    """Make, prove and pack what can be done in time; say whether all runs are there."""
    began = time.monotonic()
    points = list_points(entries)
    keep = END + (PROOF if any(entry.options.prove for entry in entries) else 0.0)
    at_once = at_once or max(entry.at_once for entry in entries)
    said = [0.0]

    def watch() -> None:
        if time.monotonic() - said[0] > 15:
            said[0] = time.monotonic()
            states = Counter(store.state(point) for point in points)
            print(f"{said[0] - began:5.0f} s  {dict(sorted(states.items()))}", flush=True)

    if points:
        limit = max(1.0, seconds - keep)
        run_local(store, points, runs_per_device=at_once, limit=limit, watch=watch)
    whole = True
    for entry in entries:
        left = len(list_unfinished(store, list_points([entry])))
        if entry.options.prove and not left:
            prove_entry(entry, store)
        whole = whole and not left
        passed = time.monotonic() - began
        told = f"{left} runs are left, {time_run(entry, store)} of epochs a run"
        print(f"{passed:5.0f} s  {entry.slug}: {told}", flush=True)
    for parcel in pack(entries, store, out):
        print(f"{parcel.file}: {parcel.runs} runs, {parcel.size:,} bytes", flush=True)
    print(f"{time.monotonic() - began:5.0f} s in all", flush=True)
    return whole


def main() -> None:
    """Hold a sitting; exit code 3 where runs are left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("slugs", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--at-once", type=int)
    parser.add_argument("--unpack", type=Path, nargs="*", default=())
    given = parser.parse_args()
    set_environment_variables()
    known = {entry.slug: entry for entry in list_entries(given.data)}
    unknown = [slug for slug in given.slugs if slug not in known]
    if unknown:
        raise SystemExit(f"error: expected of {', '.join(known)}, got {', '.join(unknown)}")
    store = Store(given.store)
    for file in given.unpack:
        print(file, unpack_run_archive(file, store))
    entries = [known[slug] for slug in given.slugs]
    given.out.mkdir(parents=True, exist_ok=True)
    raise SystemExit(0 if hold(entries, store, given.out, given.seconds, given.at_once) else 3)


if __name__ == "__main__":
    main()
