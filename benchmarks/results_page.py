"""The pages of docs/results, written from what `benchmarks.results` collected."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results_answers import answer
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
    slug, runs = collected["slug"], collected["runs"]
    data = collected["data"]
    records = ", ".join(f"{count} {PARTS[name]}" for name, count in data["records"].items())
    parts = [
        f"# {slug}",
        f"{collected['question']} {answer(collected)}",
        "\n".join(f"- {remark}" for remark in choose_remarks(collected)),
        "## How it was run",
        f"```\n{collected['command']}\n```",
    ]
    if runs["all"]:
        parts.append(
            f"{runs['all']} runs on {data['name']} ({records} in the first), "
            f"{collected['seconds']:,.0f} seconds of epochs in all: {runs['converged']} converged, "
            f"{runs['at chance']} at chance, {runs['failed']} failed. Grid `{collected['grid']}`. "
            "Every run's receipt, "
            f"weights and trail by their digests: [receipts](receipts/{slug}.json.gz)."
        )
        parts += [describe_place(place) for place in collected["environments"]]
    else:
        parts.append("Nothing is trained: closed forms, and the records themselves.")
    parts += [f"![{slug}]({slug}.png)"]
    for table in collected["tables"]:
        shown = Table(
            table["title"],
            tuple(table["columns"]),
            tuple(map(tuple, table["rows"])),
            tuple(table["notes"]),
        )
        parts.append(shown.to_markdown().rstrip())
    return "\n\n".join(part for part in parts if part) + "\n"


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
    remarks = []
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
    lines = [
        "# What was run, and what came of it",
        "",
        "Every number of ours on these pages was written by `python -m benchmarks.results`, from "
        "runs whose receipts are listed beside it; theory has closed forms and no runs. Published "
        "values are those of the paper whose experiments these are "
        "([published.md](../reference/published.md)).",
        "",
        "| study | data | runs | answer |",
        "|---|---|--:|---|",
    ]
    for slug, one in collected.items():
        name, runs = one["data"]["name"], one["runs"]["all"]
        lines.append(f"| [{slug}]({slug}.md) | {name} | {runs} | {answer(one)} |")
    lines += ["", "## Where, when and with what", ""]
    for slug, one in collected.items():
        when = f" {one['date']}." if one["date"] else ""
        places = " ".join(map(describe_place, one["environments"])) or "No runs."
        lines.append(f"- {slug}:{when} {places}")
    lines += ["", "## Run them again", "", RERUN.strip(), "", "```"]
    lines += [spell_command(entry) for entry in entries]
    lines += ["python -m benchmarks.results --store STORE --data DATA", "```", "", CARRY.strip()]
    missing = [entry.slug for entry in entries if entry.slug not in collected]
    if missing:
        lines += ["", "## Not there yet", "", f"{', '.join(missing)}: their commands stand above."]
    return "\n".join(lines) + "\n"


RERUN = """
DATA is a folder with `medmnist/breastmnist.npz` (the official file), `ptb-xl-derived100.npz`, and
the folders `mitdb` and `cpsc2021` with PhysioNet's records 100, 203 and 221 of the one and eight of
the other; more of them give other numbers. `ptb-xl-derived100.npz` holds 1,819 records of PTB-XL
(CC BY 4.0) as arrays, filtered and z-scored by others. It is not part of this project: the receipts
name the digest of what was read from it, and without it the pages that use it can be checked
against their receipts alone. A run that is in the store is not made again, and studies share runs.
`--runs-per-device` as the machine has room: how many run at once changes no bit, another kind of
device does.
"""

CARRY = """
Where a machine's time is limited, `--limit SECONDS` begins no run that would end later, and the
command exits with code 3 while runs are left. `seedless study archive NAME... --out FILE` writes
the finished runs as one file, and `seedless study unpack FILE --store STORE` puts them into a store
on another machine.
`python -m benchmarks.time_limited_runs NAME... --data DATA --store STORE --out FOLDER --seconds
SECONDS` does all of this for pages named here, with one set of worker processes, and executes again
what is to be proved.
"""
