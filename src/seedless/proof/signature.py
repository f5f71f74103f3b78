"""Signatures of receipts: a DSSE envelope next to ``receipt.json`` says who made the run.

The envelope contains the exact bytes of ``receipt.json`` and an ed25519 signature over them and
their type. It is written in canonical JSON and only accepted in that form, so that no byte of it
can change unnoticed. Formats: github.com/secure-systems-lab/dsse (protocol.md), RFC 8032 (ed25519).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedless.core.digests import canonical_json
from seedless.core.files import write_atomic
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.receipt import STATEMENT, explain_missing
from seedless.proof.signing_key import (
    SignatureError,
    digest_key,
    read_bytes,
    read_private_key,
    read_public_key,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
SIGNATURE_BYTES = 64


def sign_receipt(run: Path, key: Path) -> Path:
    """Sign the receipt of a run folder; return the envelope's path.

    Signing again with the same key writes the same bytes. A signature by another key, or of another
    receipt, is not overwritten.

    Example:
        >>> sign_receipt(Path("runs/demo"), Path("key.pem"))
    """
    private = read_private_key(Path(key))
    receipt = _read_receipt(Path(run))
    signature = private.sign(encode_pae(PAYLOAD_TYPE, receipt))
    content = _write_envelope(receipt, digest_key(private.public_key()), signature)
    out = Path(run) / ENVELOPE
    if os.path.lexists(out) and read_bytes(out, "the envelope") != content:
        raise SignatureError(
            f"{out} holds another signature, of another key or receipt; remove it to sign again"
        )
    try:
        write_atomic(out, content)
    except OSError as error:
        raise SignatureError(f"cannot write {out}: {error.strerror}") from error
    return out


def read_signature(run: Path, public_key: Ed25519PublicKey | None = None) -> dict[str, Any]:
    """Return {"state", "keyid"} of a run's signature; raise an error if it is not valid.

    The state is "none" where there is no envelope. Without a public key only the form of the
    envelope can be checked, and that it contains this receipt: the state is "not checked".
    """
    file = Path(run) / ENVELOPE
    if not os.path.lexists(file):
        if public_key is not None:
            raise SignatureError(
                f"{run} has no {ENVELOPE}, so it is not signed: run `seedless sign {run} --key KEY`"
            )
        return {"state": "none", "keyid": None}
    # [Step 1] The envelope must contain this receipt and no other.
    receipt = _read_receipt(Path(run))
    payload, signer, signature = _read_envelope(file)
    if payload != receipt:
        raise SignatureError(
            f"{file} signs another receipt (sha256 {_short(payload)}) than the {RECEIPT} next to "
            f"it (sha256 {_short(receipt)}); one of the two was changed or comes from another run"
        )
    if public_key is None:
        return {"state": "not checked", "keyid": signer}
    # [Step 2] It must be signed with the expected key.
    from cryptography.exceptions import InvalidSignature

    if signer != digest_key(public_key):
        raise SignatureError(
            f"{file}: expected a signature by key {digest_key(public_key)}, got one by key "
            f"{signer}; check with the public key of the signer"
        )
    # [Step 3] The signature must be valid for these bytes.
    try:
        public_key.verify(signature, encode_pae(PAYLOAD_TYPE, payload))
    except InvalidSignature:
        raise SignatureError(
            f"{file}: the signature does not verify with key {signer}; the envelope was changed, "
            "or somebody without the private key made it"
        ) from None
    return {"state": "checked", "keyid": signer}


def check_signature(run: Path, public_key: Path) -> str:
    """Return the id of the key that signed a run's receipt; raise an error if it did not.

    This checks that the key signed the bytes of ``receipt.json``. `validate` checks that the files
    are those the receipt names.

    Example:
        >>> check_signature(Path("runs/demo"), Path("key.pem.pub"))
        '5b3c...'
    """
    return str(read_signature(run, read_public_key(public_key))["keyid"])


def encode_pae(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: the bytes that are signed.

    ``"DSSEv1" SP LEN(type) SP type SP LEN(payload) SP payload``, lengths in bytes, as decimals.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _write_envelope(payload: bytes, keyid: str, signature: bytes) -> bytes:
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
    }
    return canonical_json(envelope) + b"\n"


def _read_envelope(file: Path) -> tuple[bytes, str, bytes]:
    """Return (payload, keyid, signature) of an envelope that is exactly as it would be written."""
    if file.is_symlink() or not file.is_file():
        raise SignatureError(f"{file}: expected a plain file, got a link, folder or device")
    content = read_bytes(file, "the envelope")
    try:
        envelope = json.loads(content)
        payload = base64.b64decode(envelope["payload"], validate=True)
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise ValueError(f"its payloadType is {envelope['payloadType']!r}")
        signatures: list[Any] = envelope["signatures"]
        if len(signatures) != 1:
            raise ValueError(f"it holds {len(signatures)} signatures")
        keyid = signatures[0]["keyid"]
        signature = base64.b64decode(signatures[0]["sig"], validate=True)
        if not re.fullmatch("[0-9a-f]{64}", keyid):
            raise ValueError(f"its keyid is {keyid!r}")
        if len(signature) != SIGNATURE_BYTES:
            raise ValueError(f"its signature has {len(signature)} bytes, not {SIGNATURE_BYTES}")
        # Other spellings of the same envelope (spaces, fields, base64 padding bits) are changes.
        if _write_envelope(payload, keyid, signature) != content:
            raise ValueError("it is not in canonical form")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise SignatureError(
            f"{file}: expected a DSSE envelope with one signature over {PAYLOAD_TYPE}, as "
            f"`seedless sign` writes it, got a malformed one: {reason}"
        ) from error
    return payload, keyid, signature


def _read_receipt(run: Path) -> bytes:
    """Return the bytes of a run's receipt, which must be what the payload's type says."""
    if not (run / RECEIPT).is_file():
        raise SignatureError(explain_missing(run))
    content = read_bytes(run / RECEIPT, "the receipt")
    try:
        kind = json.loads(content)["_type"]
    except (ValueError, LookupError, TypeError, RecursionError):
        kind = "no such thing"
    if kind != STATEMENT:
        raise SignatureError(f"{run / RECEIPT}: expected a statement of {STATEMENT}, got {kind}")
    return content


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
