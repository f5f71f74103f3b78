"""Findings: what was measured on a run after training, stored next to it.

    STORE/findings/KEY-NAME.json

Examples: whether a second execution gave the same bits, and the scores on another dataset. A
finding names the digest of the run's receipt, so it cannot be taken for one of another run with the
same key. It is copied with the run to machines that could not measure it, because they lack the
weights or a GPU. No digest covers it: what is copied is a statement of whoever measured it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedless.audit.verification import verify
from seedless.core.bounded_reading import parse_json, read_file
from seedless.core.errors import SeedlessError, StudyError
from seedless.core.files import write_atomic
from seedless.numerics.environment import capture_environment
from seedless.proof.receipt import read_receipt
from seedless.runs.folder import read_config

FOLDER = "findings"
PROOF = "proof"
MAX_BYTES = 16 << 20
CONCLUSIVE = ("identical", "differs")


def find_path(run: Path, name: str) -> Path:
    """Return the file of a finding about a run of a store."""
    return run.parent.parent / FOLDER / f"{run.name}-{name}.json"


def write_finding(run: Path, name: str, values: Mapping[str, Any]) -> None:
    """Write a finding; an earlier one of the same name is replaced."""
    content = {"receipt": read_receipt(run)["predicate"]["digest"], "found": dict(values)}
    path = find_path(run, name)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, text.encode() + b"\n")
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror}") from None


def read_finding(run: Path, name: str) -> dict[str, Any] | None:
    """Return a finding about exactly this run, or None."""
    try:
        receipt, values = parse_finding(find_path(run, name))
    except FileNotFoundError:
        return None
    return values if receipt == read_receipt(run)["predicate"]["digest"] else None


def parse_finding(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the receipt's digest that a finding names, and what was found."""
    try:
        content = parse_json(read_file(path, MAX_BYTES, error=StudyError), str(path))
        receipt, values = content["receipt"], content["found"]
        if {*content} != {"receipt", "found"} or not isinstance(values, dict):
            raise TypeError("it has other fields than receipt and found")
    except FileNotFoundError:
        raise
    except (OSError, SeedlessError, LookupError, TypeError) as error:
        raise StudyError(f"{path} cannot be read as a finding: {error}; remove it") from None
    return str(receipt), values


def prove_run(run: Path) -> dict[str, Any]:
    """Execute a run again, unless that is known, and return outcome, sentence, details and device.

    The finding is written only where this machine could decide between equal and different.
    """
    known = read_finding(run, PROOF)
    if known is not None:
        return known
    verdict = verify(run)
    here = capture_environment()
    on_gpu = read_config(run).execution.device == "cuda" and here["devices"]
    device = here["devices"][0]["name"] if on_gpu else here["cpu"]["model"]
    values = {
        "outcome": verdict.outcome,
        "sentence": verdict.sentence,
        "details": list(verdict.details),
        "device": device,
    }
    if verdict.outcome in CONCLUSIVE:
        write_finding(run, PROOF, values)
    return values
