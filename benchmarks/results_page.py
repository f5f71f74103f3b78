"""The pages of docs/results, written from what `benchmarks.results` collected."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages import render
from benchmarks.results_answers import answer, comparable
from benchmarks.results_fairness import clean_table, is_earlier, list_caveats
from benchmarks.results_gains_and_limits import list_gains, list_limits
from benchmarks.results_overview import summarize
from benchmarks.results_plan import Entry, spell_command
from benchmarks.results_saved_runs import FOLDER as KEPT
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.studies.engine.fold_pooling import MIN_POSITIVES
from seedless.studies.engine.table import Table

Collected = Mapping[str, Any]
PROGRESS = "progress"
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
NOISY = (
    "The records were filtered and z-scored before the noise was added; the noise was not filtered."
)
SMALL = "The network is the small one of `--scale small`, not the published one."


def write_pages(entries: Sequence[Entry], out: Path) -> None:
    """Write a page for each study that was collected or begun, and the index of all pages."""
    out.mkdir(parents=True, exist_ok=True)
    collected, begun = _read_all(entries, out / "collected"), _read_all(entries, out / PROGRESS)
    for slug in (entry.slug for entry in entries if entry.slug in (*collected, *begun)):
        if slug in collected:
            page = make_page(collected[slug], begun.get(slug))
        else:
            page = render("results-progress.md", one=begun[slug], describe_place=describe_place)
        (out / f"{slug}.md").write_text(page, encoding="utf-8")
    (out / "README.md").write_text(make_index(entries, collected, begun), encoding="utf-8")


def _read_all(entries: Sequence[Entry], folder: Path) -> dict[str, Collected]:
    files = {entry.slug: folder / f"{entry.slug}.json" for entry in entries}
    return {
        slug: json.loads(file.read_text(encoding="utf-8"))
        for slug, file in files.items()
        if file.exists()
    }


def make_page(collected: Collected, begun: Collected | None = None) -> str:
    """Return a study's page; ``begun``: how far the study is that will replace it, if it is."""
    counts = collected["data"]["records"].items()
    tables = [
        Table(
            table["title"],
            tuple(table["columns"]),
            tuple(map(tuple, table["rows"])),
            tuple(table["notes"]),
            tuple(table["values"]),
        )
        for table in collected["tables"]
    ]
    return render(
        "results-page.md",
        one=collected,
        begun=begun,
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
    other = collected.get("predictions")
    if other == KEPT:
        return "Their test predictions are in `docs/results/kept`, with the saved runs."
    if isinstance(other, str):
        return f"Their test predictions are among those of [{other}](predictions/{other}.npz)."
    if other:
        return (
            f"Their test predictions: [predictions](predictions/{name}.npz), from which `python -m "
            f"benchmarks.results_predictions docs/results/predictions/{name}.npz` computes every "
            "score again."
        )
    again = "" if is_earlier(collected) else ": the command above makes them again"
    return f"Their predictions were not saved{again}."


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
        remarks += [NOISY] if collected["study"] == "noise" else []
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
        rest = (
            f"under {MIN_POSITIVES} of them a class is not scored"
            if "folds" in collected["command"]
            else "in the macro AUC each counts as much as any other"
        )
        remarks.append(f"Classes that rest on few positives: {', '.join(few)}; {rest}.")
    remarks += describe_length(collected)
    if runs["at chance"] or runs["failed"]:
        remarks.append(
            f"{runs['at chance']} runs ended at chance and {runs['failed']} failed; means hold all "
            "that ended, and every table counts the others. At chance is a validation score that "
            "is not above `train.converged_above`, whatever the test score."
        )
    return remarks


def describe_length(collected: Collected) -> list[str]:
    """Return how often the last evaluation was selected, where that was counted and happened."""
    for table in collected["tables"]:
        if table["title"] == "Were the runs long enough?":
            shares = {row[0]: int(row[2]) / int(row[1]) for row in table["rows"] if int(row[1])}
            most = max(shares, key=lambda name: shares[name], default="")
            if most and shares[most]:
                return [
                    "In some runs the last evaluation was selected, in up to "
                    f"{shares[most]:.0%} of an arm's ({most}): longer training could change "
                    "scores, and not those of every arm alike."
                ]
    return []


def make_index(
    entries: Sequence[Entry], collected: Mapping[str, Collected], begun: Mapping[str, Collected]
) -> str:
    """Return the index of all pages."""
    return render(
        "results-index.md",
        collected=collected,
        begun=begun,
        summarize=summarize,
        earlier=[slug for slug, one in collected.items() if is_earlier(one)],
        places={
            slug: " ".join(map(describe_place, one["environments"]))
            for slug, one in collected.items()
        },
        commands=[spell_command(entry) for entry in entries],
        gains=list_gains(collected),
        limits=list_limits(collected),
        other=[
            entry.slug
            for entry in entries
            if entry.slug in collected and collected[entry.slug]["command"] != spell_command(entry)
        ],
        missing=[entry.slug for entry in entries if entry.slug not in (*collected, *begun)],
    )
