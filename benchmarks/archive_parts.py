"""Archives that are written while runs are executed: each holds what no earlier one holds.

A machine that is taken away then leaves everything but the last minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results_plan import Entry
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import FOLDER as FINDINGS
from seedless.studies.engine.grid import Point
from seedless.studies.engine.local_workers import list_unfinished, order_by_replicate
from seedless.studies.engine.run_archive import RunArchive, write_run_archives
from seedless.studies.engine.run_identity import KEY_DIGITS
from seedless.studies.engine.store import Store

PART_SIZE = 15  # MiB of an archive

Written = dict[str, int]  # the keys of archived runs, and how many findings each had then


def list_points(entries: Sequence[Entry]) -> list[Point]:
    """Return the runs of all entries, each once, study by study."""
    grids = [open_study(entry.study).plan(entry.options).grid for entry in entries]
    points = [point for grid in grids for point in order_by_replicate(grid.points)]
    return list({point.key: point for point in points}.values())


def write_part(
    entries: Sequence[Entry], store: Store, out: Path, written: Written, *, last: bool = False
) -> list[RunArchive]:
    """Write the finished runs that are new, or have new findings, as archives named after ``out``.

    Runs whose models are measured later keep their weights. They are in archives of their own,
    which are written when all of them are finished, or with the ``last`` part: a machine may hand
    back a few files only. The keys of what was written are added to ``written``.
    """
    found = Counter(path.name[:KEY_DIGITS] for path in (store.folder / FINDINGS).glob("*.json"))
    points, measured = list_points(entries), list_points([one for one in entries if one.measured])
    keys = {point.key for point in measured}
    with_weights = last or not list_unfinished(store, measured)
    archives: list[RunArchive] = []
    for weights in (False, True) if with_weights else (False,):
        fresh = [
            point
            for point in points
            if (point.key in keys) == weights
            and store.state(point) in ("done", "failed")
            and written.get(point.key) != found[point.key]
        ]
        if not fresh:
            continue
        name = out.with_name(f"{out.name}-weights" if weights else out.name)
        archives += write_run_archives(
            store,
            fresh,
            name.with_name(f"{name.name}.tar.xz"),
            weights=weights,
            part_size=PART_SIZE,
            force=True,
        )
        written |= {point.key: found[point.key] for point in fresh}
    return archives
