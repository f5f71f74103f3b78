"""Write docs/reference/doctor-bench.md from the records: ``python -m benchmarks.doctor.page``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.doctor.catalog import list_pairs
from benchmarks.pages import DOCS, Record, read_records, render

PAGE = DOCS / "reference" / "doctor-bench.md"
# By device: its name on the page, the record of the doctor's answers, and that of the check.
DEVICES = {
    "cpu": ("CPU", "doctor", "doctor-check"),
    "cuda": ("GPU", "doctor-gpu", "doctor-check-gpu"),
}


def make_page(recorded: Mapping[str, Record] | None = None) -> str:
    """Return the page, with every record that exists."""
    found = read_records() if recorded is None else recorded
    overhead = found.get("doctor-overhead")
    places, checks, unrecorded, unchecked = {}, {}, {}, []
    for device, (place, file, check_file) in DEVICES.items():
        if file in found:
            places[place] = describe_answers(found[file], file, device)
        else:
            unrecorded[place] = len(list_pairs(device))
        if check_file in found:
            checks[place] = describe_check(found[check_file], check_file)
        else:
            unchecked.append(place)
    return render(
        "doctor-bench.md",
        places=places,
        unrecorded=unrecorded,
        checks=checks,
        unchecked=unchecked,
        overhead=overhead,
        first=found.get("doctor-first-contact"),
        ranges=find_ranges(overhead) if overhead else {},
        rival=found.get("doctor-rival"),
    )


def describe_answers(record: Record, file: str, device: str) -> dict[str, Any]:
    """Return a record of answers with what the page says about it."""
    rows = record["results"]["rows"]
    excluded = record["results"].get("excluded", [])
    written = [pair.name for pair in list_pairs(device)]
    return {
        "record": record,
        "file": file,
        "versions": describe_versions(rows),
        "excluded": excluded,
        "not_run": sorted(set(written) - set(rows) - set(excluded)),
        "varied": {name: describe_variation(row["command"]) for name, row in rows.items()},
    }


def describe_versions(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence that says which source of the doctor gave the answers."""
    sources = sorted({row["source"] for row in rows.values()})
    if len(sources) == 1:
        return f"All answers are of one version of the doctor, with source digest `{sources[0]}`."
    listed = ", ".join(f"`{source}`" for source in sources)
    return (
        f"The answers are of {len(sources)} versions of the doctor, with source digests {listed}."
    )


def describe_variation(command: str) -> str:
    """Return the options of a doctor's command that make its two runs differ.

    >>> describe_variation("seedless doctor --vary threads=1,2 -- python train.py")
    '`--vary threads=1,2`'
    """
    options = command.removeprefix("seedless doctor").split("-- ", 1)[0].strip()
    return f"`{options}`" if options else "nothing"


def describe_check(record: Record, file: str) -> dict[str, Any]:
    """Return a record of the check with its counts."""
    rows = record["results"]["rows"]
    wrong = {name: row for name, row in rows.items() if row["found"] != row["wanted"]}
    return {
        "record": record,
        "file": file,
        "pairs": len(rows),
        "agree": len(rows) - len(wrong),
        "wrong": [f"{name} ({row['found']})" for name, row in sorted(wrong.items())],
    }


def find_ranges(overhead: Record) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the lowest and the highest ratio of processor seconds among the turns."""
    columns = {
        "pass 1, step": ("pass 1", "step_cpu", "step_cpu"),
        "pass 1, script": ("pass 1", "script_cpu", "script_cpu"),
        "pass 2, recorded step": ("pass 2", "recorded_step_cpu", "step_cpu"),
    }
    ranges: dict[str, dict[str, tuple[float, float]]] = {}
    for net, found in overhead["results"]["nets"].items():
        ranges[net] = {}
        for column, (kind, name, plain_name) in columns.items():
            turns = zip(found["runs"][kind], found["runs"]["plain"], strict=True)
            ratios = [run[name] / plain[plain_name] for run, plain in turns]
            ranges[net][column] = min(ratios), max(ratios)
    return ranges


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
