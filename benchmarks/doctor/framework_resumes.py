"""Ask ``seedless doctor --resume-at`` whether a resume from each framework's checkpoint is exact.

``python -m benchmarks.doctor.framework_resumes`` asks, and writes benchmarks/results/
doctor-resume.json; ``--only PART`` asks again where the name has that part. The table of
docs/how-to/integrations.md is made from the record.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from benchmarks.doctor.check import plant
from benchmarks.doctor.pair import Pair
from benchmarks.doctor.run import ANSWERS, ask_doctor, describe_command
from benchmarks.measure import write_results
from benchmarks.pages import RESULTS

RECORD = "doctor-resume"
PACKAGES = {
    "Lightning": "lightning",
    "Transformers": "transformers",
    "Accelerate": "accelerate",
    "Ignite": "pytorch-ignite",
}
# An epoch has 10 steps, and the run is ended in its step 14: it resumes from step 12 or 10.
END_AT = "14"
WITHIN, AFTER = "within an epoch", "after an epoch"


def _ask(framework: str, place: str, note: str, script: str, options: str) -> Pair:
    command = f"python train.py --out {{out}} {options}"
    return Pair(
        "|".join([framework, place, note]),
        f"resume_{script}",
        options=("--resume-at", END_AT),
        command=command,
    )


QUESTIONS = (
    _ask("Lightning", WITHIN, "", "lightning", "--save-every 4"),
    _ask("Lightning", AFTER, "", "lightning", "--save-every 10"),
    _ask(
        "Lightning",
        AFTER,
        "no shuffling, no dropout",
        "lightning",
        "--save-every 10 --no-shuffle --dropout 0",
    ),
    _ask(
        "Lightning",
        AFTER,
        "order by epoch, generator saved",
        "lightning",
        "--save-every 10 --keep-generator",
    ),
    _ask("Transformers", WITHIN, "", "trainer", "--save-steps 4"),
    _ask("Transformers", AFTER, "", "trainer", "--save-steps 10"),
    _ask("Transformers", WITHIN, "random masking", "trainer", "--save-steps 4 --mask 0.1"),
    _ask("Accelerate", WITHIN, "", "accelerate", "--checkpointing-steps 4"),
    _ask("Accelerate", AFTER, "", "accelerate", "--checkpointing-steps 10"),
    _ask(
        "Accelerate",
        WITHIN,
        "generator seeded in each epoch",
        "accelerate",
        "--checkpointing-steps 4 --own-generator",
    ),
    _ask("Ignite", WITHIN, "", "ignite", "--checkpoint-every 4"),
    _ask("Ignite", AFTER, "", "ignite", "--checkpoint-every 10"),
    _ask("Ignite", WITHIN, "DeterministicEngine", "ignite", "--checkpoint-every 4 --deterministic"),
    _ask("Ignite", AFTER, "DeterministicEngine", "ignite", "--checkpoint-every 10 --deterministic"),
)


def ask(question: Pair) -> dict[str, Any]:
    """Return what the doctor says of one script."""
    with plant(question) as (folder, _):
        code, answer, errors = ask_doctor(question, folder)
    row: dict[str, Any] = {name: answer.get(name) for name in (*ANSWERS, "evidence")}
    row |= {"exit": code, "command": describe_command(question)}
    return row | ({"errors": errors} if code not in (0, 1) else {})


def make_table(record: Mapping[str, Any]) -> str:
    """Return the record as a Markdown table."""
    lines = [
        "| framework | checkpoint | script | resume | what differs first | cause |",
        "|---|---|---|---|---|---|",
    ]
    rows = record["results"]["answers"]
    for question in QUESTIONS:
        framework, place, note = question.name.split("|")
        row = rows[question.name]
        verdict = {0: "exact", 1: "not exact"}.get(row["exit"], "no answer")
        what, cause = (
            (f"{row['what']}, step {row['step']}".replace("_", " "), f"`{row['cause']}`")
            if row["exit"] == 1
            else ("", "")
        )
        note = note or "shuffling and dropout"
        lines.append(f"| {framework} | {place} | {note} | {verdict} | {what} | {cause} |")
    versions = ", ".join(
        f"{name} {number}" for name, number in record["results"]["versions"].items()
    )
    source = f"{versions}; asked once each, on a CPU, by `{record['command']}`."
    return "\n".join([*lines, "", source])


def read_record() -> dict[str, Any]:
    """Return what is recorded."""
    content: dict[str, Any] = json.loads((RESULTS / f"{RECORD}.json").read_text())
    return content


def main() -> None:
    """Ask what is not recorded yet, write the record, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="ask again where the name has this part")
    only = parser.parse_args().only
    exists = os.path.exists(RESULTS / f"{RECORD}.json")
    answers = read_record()["results"]["answers"] if exists else {}
    versions = {name: version(package) for name, package in PACKAGES.items()}
    command = "python -m benchmarks.doctor.framework_resumes"
    for question in QUESTIONS:
        if only in question.name if only is not None else question.name not in answers:
            answers[question.name] = ask(question)
            row = answers[question.name]
            print(question.name, row["exit"], row["what"], row["cause"], flush=True)
            write_results(RECORD, command, {"answers": answers, "versions": versions})
    print(make_table(read_record()))


if __name__ == "__main__":
    main()
