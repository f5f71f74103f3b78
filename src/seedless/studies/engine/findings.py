"""What was found out about a run after it was made: executed again, tried on another dataset.

    STORE/findings/KEY-NAME.json

A finding is bound to the run's receipt, so it says nothing of another run under the same key. It
travels with the run to machines that could not find it out: without its weights, or without a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedless.core.errors import StudyError
from seedless.core.files import write_atomic
from seedless.proof.receipt import read_receipt

FOLDER = "findings"


def find_path(run: Path, name: str) -> Path:
    """Return the file a finding about a run of a store lies in."""
    return run.parent.parent / FOLDER / f"{run.name}-{name}.json"


def write_finding(run: Path, name: str, values: Mapping[str, Any]) -> None:
    """Write a finding, in place of an earlier one of its name."""
    content = {"receipt": read_receipt(run)["predicate"]["digest"], "found": dict(values)}
    path = find_path(run, name)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, text.encode() + b"\n")
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror}") from None


def read_finding(run: Path, name: str) -> dict[str, Any] | None:
    """Return a finding about this very run, or None."""
    path = find_path(run, name)
    try:
        content = json.loads(path.read_bytes())
        receipt, found = content["receipt"], dict(content["found"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StudyError(f"{path} cannot be read as a finding: {error}; remove it") from None
    return found if receipt == read_receipt(run)["predicate"]["digest"] else None
