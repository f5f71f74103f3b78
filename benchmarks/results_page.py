"""The pages of docs/results, written from what `benchmarks.results` collected."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages import render
from benchmarks.results_answers import answer, comparable
from benchmarks.results_fairness import clean_table, list_caveats
from benchmarks.results_plan import Entry, spell_command
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.studies.engine.fold_pooling import MIN_POSITIVES
from seedless.studies.engine.table import Table

Collected = Mapping[str, Any]
PARTS = {"train": "in training folds", "val": "to validate", "test": "to test"}

# What must be said wherever these records are used.
DERIVED = (
    "The ECGs are real records of PTB-XL, and not as PTB-XL has them: filtered to 0.5-40 Hz, each "
    "lead z-scored, resampled from 500 to 100 Hz and rounded to 0.01. AUCs here do not compare "
    "with the published ones, which stand beside them only to say what was published.",
)
FILTERED = (
    "The records were filtered to 0.5-40 Hz before they came here, so nearly all of their energy "
    "lies in the lowest 0.8 N frequencies by construction, which is what the first rows of dct and "
    "sinusoidal are. It is no evidence for the published claim about records as recorded."
)
SIMULATED = (
    "The records are simulated: they show how methods compare on such records, no more. Published "
    "values beside them are of real records."
)
SMALL = "The network is the small one of `--scale small`, not the published one."


def write_pages(entries: Sequence[Entry], out: Path) -> None:
    """Write a page for each study that was collected, and the index of all pages."""
    collected = {}
    for entry in entries:
        file = out / "collected" / f"{entry.slug}.json"
        if file.exists():
            collected[entry.slug] = json.loads(file.read_text(encoding="utf-8"))
            page = make_page(collected[entry.slug])
            (out / f"{entry.slug}.md").write_text(page, encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    (out / "README.md").write_text(make_index(entries, collected), encoding="utf-8")


def make_page(collected: Collected) -> str:
    """Return a study's page."""
    counts = collected["data"]["records"].items()
    tables = [
        Table(
            table["title"],
            tuple(table["columns"]),
            tuple(map(tuple, table["rows"])),
            tuple(table["notes"]),
        )
        for table in collected["tables"]
    ]
    return render(
        "results-page.md",
        one=collected,
        answer=answer,
        remarks=choose_remarks(collected),
        predictions=describe_predictions(collected),
        records=", ".join(f"{count} {PARTS[name]}" for name, count in counts),
        describe_place=describe_place,
        tables=[
            clean_table(collected, table, comparable=comparable(collected)).to_markdown().rstrip()
            for table in tables
        ],
    )


def describe_predictions(collected: Collected) -> str:
    """Return where the test predictions of the runs are."""
    name = collected["slug"]
    if collected.get("predictions"):
        return (
            f"Their test predictions: [predictions](predictions/{name}.npz), from which `python -m "
            f"benchmarks.results_predictions docs/results/predictions/{name}.npz` computes every "
            "score again."
        )
    return "Their predictions were not kept: the command above makes them again."


def describe_place(place: Collected) -> str:
    """Return where runs were made, in a line."""
    runs = f"{place['runs']} runs" if place["runs"] > 1 else "1 run"
    return (
        f"{runs} on {place['device']}, torch {place['torch']}, Python {place['python']}, mode "
        f"{place['mode']}, {place['precision']}; seedless {place['version']}, source "
        f"`{place['source'][:23]}`."
    )


def choose_remarks(collected: Collected) -> list[str]:
    """Return what a reader must know of these data and runs, by what they are."""
    remarks = list_caveats(collected)
    classes: Mapping[str, int] = collected["data"]["classes"]
    runs = collected["runs"]
    theory = not runs["all"]
    if "derived100" in collected["data"]["name"]:
        remarks += [FILTERED] if theory else DERIVED
    if collected["setting"]["simulated"]:
        remarks.append(SIMULATED)
    if collected["setting"].get("scale") == "small":
        remarks.append(SMALL)
    if labelled := collected["data"].get("labelled"):
        count, of = labelled
        rest = "; no other is trained on, but validated and tested with" if count < of else ""
        remarks.append(f"{count:,} of the {of:,} records carry a label{rest}.")
    absent = [name for name, count in classes.items() if count == 0]
    few = [f"{name} ({count})" for name, count in classes.items() if 0 < count < FEW_POSITIVES]
    if absent:
        remarks.append(
            f"Without a positive in the test records, so in no score: {', '.join(absent)}."
        )
    if few:
        pooled = (
            f"; under {MIN_POSITIVES} of them a class is not scored"
            if "folds" in collected["command"]
            else ""
        )
        remarks.append(f"Classes that rest on few positives: {', '.join(few)}{pooled}.")
    if runs["at chance"] or runs["failed"]:
        remarks.append(
            f"{runs['at chance']} runs ended at chance and {runs['failed']} failed; means hold all "
            "that ended, and every table counts the others."
        )
    return remarks


def make_index(entries: Sequence[Entry], collected: Mapping[str, Collected]) -> str:
    """Return the index of all pages."""
    return render(
        "results-index.md",
        collected=collected,
        answer=answer,
        places={
            slug: " ".join(map(describe_place, one["environments"]))
            for slug, one in collected.items()
        },
        commands=[spell_command(entry) for entry in entries],
        missing=[entry.slug for entry in entries if entry.slug not in collected],
    )
