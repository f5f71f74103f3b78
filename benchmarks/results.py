"""Write docs/results from a store, so that no figure there is typed by hand:

    python -m benchmarks.results --store STORE --data DATA [--date TEXT] [--only NAME] [--seeds N]

Every study of `benchmarks.results_plan` whose runs are all in the store is tabulated and drawn, and
its runs' receipts are listed; pages are then written from what was collected, now or before.
Without a store only the pages are written again. Equal stores give equal bytes. --seeds collects
the first seeds alone, where the protocol ends a study early.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS
from benchmarks.results_page import write_pages
from benchmarks.results_plan import Entry, list_entries, spell_command
from benchmarks.results_predictions import FOLDER as PREDICTIONS
from benchmarks.results_predictions import pack_predictions
from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import SeedlessError
from seedless.data.loading import load
from seedless.numerics.determinism import set_environment_variables
from seedless.proof.receipt import get_content_digest, read_receipt
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import PROOF, PROOF_FORM, read_finding
from seedless.studies.engine.local_workers import list_unfinished
from seedless.studies.engine.results import Results
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Outcome, Store

PAGES = RESULTS.parent.parent / "docs" / "results"
COLLECTED, RECEIPTS = "collected", "receipts"


def collect(entry: Entry, store: Store, out: Path, date: str | None = None) -> bool:
    """Write tables, figure and receipts of a study; False where the store lacks runs of it."""
    plan = open_study(entry.study).plan(entry.options)
    if list_unfinished(store, plan.grid.points):
        return False
    written = write_study(plan, store)
    results = written.results
    assert results is not None
    receipts = list_receipts(results.outcomes)
    made = {one.point.key: _place(one) for one in results.outcomes if one.ok}.values()
    places = Counter(digest_value(place) for place in made)
    environments = {digest_value(place): place for place in made}
    content = {
        "slug": entry.slug,
        "study": entry.study,
        "question": plan.study.question,
        "command": spell_command(entry),
        "date": date,
        "data": describe_data(results),
        "setting": {"scale": entry.options.scale, "simulated": entry.options.simulated},
        "grid": plan.grid.digest,
        "runs": count_runs(results.outcomes),
        "seconds": add_seconds(results.outcomes),
        "executed_again": count_proofs(results.outcomes),
        "environments": [{**environments[key], "runs": places[key]} for key in sorted(places)],
        "tables": [asdict(table) for table in written.tables],
    }
    predictions = pack_predictions(results.outcomes)
    content["predictions"] = predictions is not None
    for folder in (COLLECTED, RECEIPTS, PREDICTIONS):
        (out / folder).mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    (out / COLLECTED / f"{entry.slug}.json").write_text(text + "\n", encoding="utf-8")
    assert written.figure is not None
    (out / f"{entry.slug}.png").write_bytes(written.figure.read_bytes())
    if receipts["runs"]:
        packed = gzip.compress(canonical_json(receipts), mtime=0)
        (out / RECEIPTS / f"{entry.slug}.json.gz").write_bytes(packed)
    if predictions is not None:
        (out / PREDICTIONS / f"{entry.slug}.npz").write_bytes(predictions)
    return True


def list_receipts(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what each run's receipt says in short, its scores, and the environments they name."""
    runs, environments = [], {}
    for one in {one.point.key: one for one in outcomes}.values():
        row: dict[str, Any] = {"key": one.point.key, "run": one.point.label, "error": one.error}
        if one.ok:
            claims = read_receipt(one.run)["predicate"]
            place = digest_value(claims["environment"])
            environments[place] = claims["environment"]
            row |= {
                "receipt": claims["digest"],
                "scores": _list_scores(one),
                "config": claims["config"]["digest"],
                "source": claims["source"]["digest"],
                "data": get_content_digest(claims),
                "initialization": claims["initialization"]["weights"],
                "trail": claims["trail"],
                "weights": claims["weights"],
                "predictions": claims["predictions"],
                "environment": place,
            }
        runs.append(row)
    return {"runs": runs, "environments": environments}


def describe_data(results: Results) -> dict[str, Any]:
    """Return the data's name, the records of a run, and the positives of each class."""
    done = [one for one in results.outcomes if one.ok]
    if not done:
        return {"name": Path(results.options.data).stem, "records": {}, "classes": {}}
    facts = read_receipt(done[0].run)["predicate"]["data"]
    first = load(done[0].point.config.data)
    return {
        "name": Path(results.options.data).stem,
        "labelled": [int(first.Y.any(axis=1).sum()), len(first)],
        "records": facts["records"],
        "classes": results.classes(done[0].point.block),
    }


def count_runs(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many runs there are, and how many failed or ended at chance."""
    runs = {one.point.key: one for one in outcomes}.values()
    states = Counter(one.state for one in runs)
    return {"all": len(runs), **{k: states[k] for k in ("converged", "at chance", "failed")}}


def count_proofs(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many runs were executed again, and how many of them gave the same bits."""
    runs = {one.point.key: one.run for one in outcomes if one.ok}.values()
    proofs = [read_finding(run, PROOF, PROOF_FORM) for run in runs]
    found = [proof for proof in proofs if proof is not None]
    return {"all": len(found), "identical": sum(p["outcome"] == "identical" for p in found)}


def add_seconds(outcomes: Sequence[Outcome]) -> float:
    """Return the seconds all runs spent on epochs, by their logs."""
    from seedless.train.log import LOG_FILE, read_log

    runs = {one.point.key: one.run for one in outcomes if one.ok}.values()
    return round(sum(line["seconds"] for run in runs for line in read_log(run / LOG_FILE)), 1)


def _list_scores(one: Outcome) -> dict[str, Any]:
    """Return the test scores of a finished run: macro AUC, and the AUC of each class by name."""
    test = (one.metrics or {}).get("test")
    if test is None:
        return {}
    classes = {name: part["auc"] for name, part in test["classes"].items()}
    return {"macro_auc": test["macro_auc"], "classes": classes}


def _place(one: Outcome) -> dict[str, Any]:
    """Return in short where a finished run was made."""
    claims = read_receipt(one.run)["predicate"]
    machine, execution = claims["environment"], claims["config"]["values"]["execution"]
    on_gpu = execution["device"] == "cuda" and machine["devices"]
    return {
        "device": machine["devices"][0]["name"] if on_gpu else machine["cpu"]["model"],
        "python": machine["python"],
        "torch": machine["packages"]["torch"],
        "mode": execution["mode"],
        "precision": execution["precision"],
        "source": claims["source"]["digest"],
        "version": claims["source"]["version"],
    }


def build(
    entries: Sequence[Entry], store: Store | None, out: Path, date: str | None = None
) -> list[str]:
    """Collect what is there, write all pages, and return the slugs that were collected."""
    found = []
    for entry in entries if store is not None else ():
        assert store is not None
        if collect(entry, store, out, date):
            found.append(entry.slug)
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
    if arguments.seeds is not None:
        fewer = {"seeds": arguments.seeds}
        chosen = [replace(one, options=replace(one.options, **fewer)) for one in chosen]
    store = None if arguments.store is None else Store(arguments.store)
    try:
        for slug in build(chosen, store, arguments.out, arguments.date):
            print(f"collected {slug}")
        write_pages(entries, arguments.out)
    except SeedlessError as error:
        raise SystemExit(f"error: {error}") from None
    print(arguments.out / "README.md")


if __name__ == "__main__":
    main()
