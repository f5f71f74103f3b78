"""Checks of the files that others' tools read next to a receipt: are they about this run?

Provenance follows from the receipt, so it is compared byte for byte. A model signature must list
the files of this run, and a summary must name this receipt. Whose signatures they are, only a
public key can show; nothing here says that a signature is valid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.errors import SeedlessError
from seedless.proof import model_signing, provenance, verification_summary
from seedless.proof.envelope import read_envelope
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import WEIGHTS, describe_file, make_digest_set

if TYPE_CHECKING:
    from seedless.runs.script_run import ScriptRun
    from seedless.runs.validation import ValidatedRun


def list_signed_files(run: ValidatedRun | ScriptRun) -> dict[str, str]:
    """Return "sha256:..." of the receipt and of each file in the folder that it covers."""
    files: Mapping[str, str] = run.claims["files"]
    present = {name: files[name] for name in files if name not in run.left_out}
    return {**present, RECEIPT: provenance.digest_receipt(run.receipt)}


def check_attestations(run: ValidatedRun) -> list[str]:
    """Return which of these files are not about this run, a sentence each."""
    problems = []
    for name, check in CHECKS.items():
        if not os.path.lexists(run.path / name):
            continue
        try:
            problems += check(run)
        except (SeedlessError, OSError, LookupError, TypeError, AttributeError) as error:
            # A forged file may have any form.
            problems.append(f"{name} cannot be read as what its name says: {error}")
    return problems


def check_provenance(run: ValidatedRun) -> list[str]:
    """Compare provenance.json with what the receipt implies."""
    content = read_file(run.path / provenance.FILE, MAX_JSON_BYTES)
    return _compare_provenance(run, provenance.FILE, content)


def check_signed_provenance(run: ValidatedRun) -> list[str]:
    """Compare the payload of provenance.dsse.json with what the receipt implies."""
    payload, _, _ = read_envelope(run.path / provenance.ENVELOPE)
    return _compare_provenance(run, provenance.ENVELOPE, payload)


def check_summary(run: ValidatedRun) -> list[str]:
    """Check that a summary is about the weights and receipt of this run, by the key it names."""
    name = verification_summary.FILE
    payload, keyid, _ = read_envelope(run.path / name)
    statement: Any = parse_json(payload, name)
    verifier = verification_summary.name_verifier(keyid)
    expected = make_digest_set(provenance.digest_receipt(run.receipt))
    read = [one["digest"] for one in statement["predicate"]["inputAttestations"]]
    subject = [describe_file(WEIGHTS, run.claims["files"][WEIGHTS])]
    if (
        statement["predicateType"] != verification_summary.PREDICATE
        or statement["subject"] != subject
        or statement["predicate"]["verifier"]["id"] != verifier
        or expected not in read
    ):
        return [f"{name} is not the summary of a verification of this run"]
    return []


def check_model_files(run: ValidatedRun) -> list[str]:
    """Compare the files that model.sig lists with those of the run."""
    return model_signing.check_listed_files(run.path, list_signed_files(run))


def _compare_provenance(run: ValidatedRun, name: str, content: bytes) -> list[str]:
    if content == provenance.make_provenance(run.receipt):
        return []
    return [
        f"{name} does not say what the receipt says; it was changed or is of another run: remove "
        "it, and write it again with `seedless provenance`"
    ]


CHECKS: dict[str, Callable[[ValidatedRun], list[str]]] = {
    provenance.FILE: check_provenance,
    provenance.ENVELOPE: check_signed_provenance,
    verification_summary.FILE: check_summary,
    model_signing.FILE: check_model_files,
}
