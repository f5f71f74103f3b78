"""Write docs/results from a store, so that no figure there is typed by hand:

    python -m benchmarks.results --store STORE --data DATA [--date TEXT] [--only NAME] [--seeds N]

Every study of `benchmarks.results_plan` whose runs are all in the store is tabulated and drawn, and
its runs' receipts are listed; pages are then written from what was collected, now or before.
The finished runs of other studies are saved in docs/results/kept and read from there the next time
(`benchmarks.results_saved_runs`). Without a store only the pages are written again. With an empty
store the saved runs alone are used. Equal stores give equal bytes. --seeds collects only the first
seeds, where the protocol ends a study early.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS
from benchmarks.results_page import PROGRESS, write_pages
from benchmarks.results_plan import Entry, list_entries, spell_command
from benchmarks.results_predictions import FOLDER as PREDICTIONS
from benchmarks.results_predictions import find_holder, pack_predictions
from benchmarks.results_runs import RunRecord, count_proofs, list_places, list_receipts
from benchmarks.results_saved_runs import FOLDER as KEPT
from benchmarks.results_saved_runs import STUDIES as KEPT_STUDIES
from benchmarks.results_saved_runs import JoinedStore, choose_new, read_parts, write_part
from seedless.core.digests import canonical_json
from seedless.core.errors import SeedlessError
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.catalog import open_study
from seedless.studies.engine.arm_tables import name_arm
from seedless.studies.engine.local_workers import list_unfinished
from seedless.studies.engine.results import Results
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Outcome, Store
from seedless.studies.engine.study import Plan

PAGES = RESULTS.parent.parent / "docs" / "results"
COLLECTED, RECEIPTS = "collected", "receipts"
Pairs = list[tuple[Outcome, RunRecord]]


def collect(entry: Entry, store: JoinedStore, out: Path, date: str | None = None) -> Pairs | None:
    """Write tables, figure and receipts of a study whose runs are all there, and return None.

    Where runs are missing, what is done is counted, and returned so that it can be kept.
    """
    plan = open_study(entry.study).plan(entry.options)
    left = list_unfinished(store, plan.grid.points)
    if left and entry.study not in KEPT_STUDIES:
        return []
    if left:
        missing = {point.key for point in left}
        done = [store.read(p) for p in plan.grid.runs if p.key not in missing]
        pairs = [(one, store.describe(one)) for one in done]
        write_progress(entry, plan, pairs, out, date)
        return pairs
    written = write_study(plan, store)
    results = written.results
    assert results is not None
    by_key = {one.point.key: one for one in results.outcomes}
    records = [store.describe(one) for one in by_key.values()]
    receipts = list_receipts(results.outcomes, records)
    content = {
        **describe_entry(entry, plan, date),
        "data": describe_data(results, records),
        "runs": count_runs(results.outcomes),
        "seconds": round(sum(record.seconds for record in records), 1),
        "executed_again": count_proofs(records),
        "environments": list_places(records),
        "tables": [asdict(table) for table in written.tables],
    }
    other = find_holder(set(by_key), out, entry.slug)
    predictions = pack_predictions(results.outcomes) if other is None else None
    if by_key and other is None and predictions is None and store.kept.keys() >= by_key.keys():
        other = KEPT
    content["predictions"] = other or predictions is not None
    for folder in (COLLECTED, RECEIPTS, PREDICTIONS):
        (out / folder).mkdir(parents=True, exist_ok=True)
    write_json(out / COLLECTED / f"{entry.slug}.json", content)
    (out / PROGRESS / f"{entry.slug}.json").unlink(missing_ok=True)
    assert written.figure is not None
    (out / f"{entry.slug}.png").write_bytes(written.figure.read_bytes())
    if receipts["runs"]:
        packed = gzip.compress(canonical_json(receipts), mtime=0)
        (out / RECEIPTS / f"{entry.slug}.json.gz").write_bytes(packed)
    if predictions is not None:
        (out / PREDICTIONS / f"{entry.slug}.npz").write_bytes(predictions)
    return None


def describe_entry(entry: Entry, plan: Plan, date: str | None) -> dict[str, Any]:
    """Return what is known of a study before it is run."""
    return {
        "slug": entry.slug,
        "study": entry.study,
        "question": plan.study.question,
        "command": spell_command(entry),
        "date": date,
        "setting": {"scale": entry.options.scale, "simulated": entry.options.simulated},
        "grid": plan.grid.digest,
    }


def write_progress(entry: Entry, plan: Plan, pairs: Pairs, out: Path, date: str | None) -> None:
    """Write how many runs of each arm are done: no scores and no tests, as the protocol asks."""
    file = out / PROGRESS / f"{entry.slug}.json"
    if not pairs:
        file.unlink(missing_ok=True)
        return
    ended = {one.point.key: one.ok for one, _ in pairs}
    rows = []
    for block, arm in plan.grid.arms_by_block:
        points = plan.grid.points_of(arm, block)
        replicates: dict[str, list[str]] = {}
        for point in points:
            replicates.setdefault(point.replicate, []).append(point.key)
        whole = sum(all(key in ended for key in keys) for keys in replicates.values())
        states = [ended[point.key] for point in points if point.key in ended]
        counts = (len(points), len(states), states.count(False), len(replicates), whole)
        rows.append([name_arm(block, arm), *map(str, counts)])
    records = [record for _, record in pairs]
    content = {
        **describe_entry(entry, plan, date),
        "data": Path(entry.options.data).stem,
        "planned": len(plan.grid.runs),
        "done": len(pairs),
        "executed_again": count_proofs(records),
        "environments": list_places(records),
        "rows": rows,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, content)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a file of JSON that repeats, and whose changes can be read."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8")


def describe_data(results: Results, records: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the data's name, the records of a run, and the positives of each class."""
    name = Path(results.options.data).stem
    done = [(one.point, record) for one, record in zip_runs(results, records) if one.ok]
    if not done:
        return {"name": name, "records": {}, "classes": {}}
    first, record = done[0]
    classes = results.classes(first.block)
    counts = {"labelled": record.labelled, "records": record.records}
    return {"name": name, "classes": classes, **counts}


def zip_runs(results: Results, records: Sequence[RunRecord]) -> Iterable[tuple[Outcome, RunRecord]]:
    """Return each outcome with the record of its run, which points may share."""
    by_key = {record.row["key"]: record for record in records}
    return [(one, by_key[one.point.key]) for one in results.outcomes]


def count_runs(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many runs there are, and how many failed or ended at chance."""
    runs = {one.point.key: one for one in outcomes}.values()
    states = Counter(one.state for one in runs)
    return {"all": len(runs), **{k: states[k] for k in ("converged", "at chance", "failed")}}


def build(
    entries: Sequence[Entry], store: Store | None, out: Path, date: str | None = None
) -> list[str]:
    """Collect what is there, keep what is not finished, and write all pages.

    Returns the slugs that were collected. Each run of the store that an unfinished study needs is
    kept, and runs that were kept before are read like those of the store.
    """
    found: list[str] = []
    if store is not None:
        kept = read_parts(out / KEPT)
        new: dict[str, tuple[Outcome, RunRecord]] = {}
        for entry in entries:
            # Other studies need the folders of their runs, which are not kept.
            usable = kept if entry.study in KEPT_STUDIES else {}
            unfinished = collect(entry, JoinedStore(store.folder, usable), out, date)
            if unfinished is None:
                found.append(entry.slug)
            else:
                new |= {one.point.key: (one, record) for one, record in unfinished}
        write_part(out / KEPT, choose_new(list(new.values()), kept))
    write_pages(entries, out)
    return found


def main() -> None:
    """Write the pages and say what was collected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=PAGES)
    parser.add_argument("--date")
    parser.add_argument("--only")
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    set_environment_variables()
    entries = list_entries(arguments.data)
    chosen = [one for one in entries if arguments.only in (None, one.slug)]
    seeds = arguments.seeds
    fewer = [
        one if seeds is None else replace(one, options=replace(one.options, seeds=seeds))
        for one in chosen
    ]
    store = None if arguments.store is None else Store(arguments.store)
    try:
        for slug in build(fewer, store, arguments.out, arguments.date):
            print(f"collected {slug}")
        if fewer != chosen:  # what the rest of the study lacks
            build(chosen, store, arguments.out, arguments.date)
        write_pages(entries, arguments.out)
    except SeedlessError as error:
        raise SystemExit(f"error: {error}") from None
    print(arguments.out / "README.md")


if __name__ == "__main__":
    main()
