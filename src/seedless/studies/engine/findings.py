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

Form = Mapping[str, Any]  # of each field the type, several types, or the form of its own fields

FOLDER = "findings"
PROOF = "proof"
MAX_BYTES = 16 << 20
PROOF_FORM = {"outcome": str, "sentence": str, "details": list, "device": str}
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


def read_finding(run: Path, name: str, form: Form) -> dict[str, Any] | None:
    """Return a finding about exactly this run, or None; one of another form is an error.

    Args:
        run: the run folder, in a store.
        name: of the finding.
        form: the type, or the types, of each of its fields; a mapping for a field with fields.

    Example: ``read_finding(run, "proof", PROOF_FORM)``
    """
    path = find_path(run, name)
    try:
        receipt, values = parse_finding(path)
    except FileNotFoundError:
        return None
    if receipt != read_receipt(run)["predicate"]["digest"]:
        return None
    if not _has_form(values, form):
        raise StudyError(f"{path} does not have the fields of such a finding; remove it")
    return values


def _has_form(value: Any, form: Any) -> bool:
    """Whether a value has exactly the fields of a form, each of its type."""
    if not isinstance(form, Mapping):
        return isinstance(value, form) and not isinstance(value, bool)
    if not isinstance(value, dict) or {*value} != {*form}:
        return False
    return all(_has_form(value[name], form[name]) for name in form)


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
    known = read_finding(run, PROOF, PROOF_FORM)
    if known is not None:
        if known["outcome"] not in CONCLUSIVE:
            raise StudyError(f"{find_path(run, PROOF)} holds no result of an execution; remove it")
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
