"""Signatures of receipts: a DSSE envelope next to ``receipt.json`` says who made the run.

The envelope contains the exact bytes of ``receipt.json`` and an ed25519 signature over them and
their type.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import parse_json
from seedless.proof.envelope import check_envelope, read_envelope, sign_payload
from seedless.proof.keys import SignatureError, read_ed25519_public, read_file, write_signature
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.receipt import STATEMENT, explain_missing


def sign_receipt(run: Path, key: Path) -> Path:
    """Sign the receipt of a run folder; return the envelope's path.

    Signing again with the same key writes the same bytes. A signature by another key, or of another
    receipt, is not overwritten.

    Example:
        >>> sign_receipt(Path("runs/demo"), Path("key.pem"))
    """
    content = sign_payload(_read_receipt(Path(run)), Path(key))
    return write_signature(Path(run) / ENVELOPE, content, "receipt")


def check_signature(run: Path, public_key: Path) -> str:
    """Return the id of the key that signed a run's receipt; raise an error if it did not.

    This checks that the key signed the bytes of ``receipt.json``. `validate` checks that the files
    are those the receipt names.

    Example:
        >>> check_signature(Path("runs/demo"), Path("key.pem.pub"))
        '5b3c...'
    """
    return str(read_signature(run, Path(public_key))["keyid"])


def read_signature(run: Path, public_key: Path | None = None) -> dict[str, Any]:
    """Return {"state", "keyid"} of a run's signature; raise an error if it is not valid.

    The state is "none" where there is no envelope. Without a public key only the form of the
    envelope can be checked, and that it contains this receipt: the state is "not checked".
    """
    # [Step 1] There must be an envelope, if a key says that the run is signed.
    if public_key is not None:
        read_ed25519_public(public_key)
    receipt, file = _read_receipt(Path(run)), Path(run) / ENVELOPE
    if not os.path.lexists(file):
        if public_key is None:
            return {"state": "none", "keyid": None}
        raise SignatureError(
            f"{run} has no {ENVELOPE}, so it is not signed: run `seedless sign {run} --key KEY`"
        )
    # [Step 2] It must contain this receipt and no other.
    payload, signer, _ = read_envelope(file)
    if payload != receipt:
        raise SignatureError(
            f"{file} signs another receipt (sha256 {_short(payload)}) than the {RECEIPT} next to "
            f"it (sha256 {_short(receipt)}); one of the two was changed or comes from another run"
        )
    if public_key is None:
        return {"state": "not checked", "keyid": signer}
    # [Step 3] It must be signed with the expected key.
    return {"state": "checked", "keyid": check_envelope(file, public_key)[1]}


def _read_receipt(run: Path) -> bytes:
    """Return the bytes of a run's receipt, which must be what the payload's type says."""
    if not (run / RECEIPT).is_file():
        raise SignatureError(explain_missing(run))
    content = read_file(run / RECEIPT, "the receipt")
    try:
        kind = parse_json(content, str(run / RECEIPT), error=SignatureError)["_type"]
    except (ValueError, LookupError, TypeError, RecursionError):
        kind = "no such thing"
    if kind != STATEMENT:
        raise SignatureError(f"{run / RECEIPT}: expected a statement of {STATEMENT}, got {kind}")
    return content


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
