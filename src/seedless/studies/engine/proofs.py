"""A run of a study executed again, and the verdict kept for machines that cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seedless.audit.verification import verify
from seedless.numerics.environment import capture_environment
from seedless.runs.folder import read_config
from seedless.studies.engine.findings import read_finding, write_finding

NAME = "proof"
JUDGED = ("identical", "differs")


def prove_run(run: Path) -> dict[str, Any]:
    """Return outcome, sentence and device of a run's second execution; it is made where none is.

    One that this machine cannot judge is returned, and not kept.
    """
    known = read_finding(run, NAME)
    if known is not None:
        return known
    verdict = verify(run)
    here = capture_environment()
    on_gpu = read_config(run).execution.device == "cuda" and here["devices"]
    device = here["devices"][0]["name"] if on_gpu else here["cpu"]["model"]
    found = {
        "outcome": verdict.outcome,
        "sentence": verdict.sentence,
        "details": list(verdict.details),
        "device": device,
    }
    if verdict.outcome in JUDGED:
        write_finding(run, NAME, found)
    return found
