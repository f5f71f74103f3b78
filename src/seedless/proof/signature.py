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
from seedless.core.errors import SeedlessError
from seedless.core.files import write_atomic
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.receipt import STATEMENT, explain_missing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PAYLOAD_TYPE = "application/vnd.in-toto+json"


class SignatureError(SeedlessError):
    """A receipt that cannot be signed, or a signature that is not valid."""


def make_key(path: Path) -> Path:
    """Write a new private key to ``path``, for its owner only, and the public key to PATH.pub.

    Both are PEM (PKCS8, SubjectPublicKeyInfo) without a passphrase. Nothing is overwritten.

    Example:
        >>> make_key(Path("key.pem"))
    """
    _need_cryptography()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = Path(path)
    public = public_path(path)
    for file in (path, public):
        if os.path.lexists(file):
            raise SignatureError(f"{file} is there already; keys are never overwritten")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    shown = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for file, content, mode in ((public, shown, 0o644), (path, secret, 0o600)):
        try:
            # Created with its final mode: at no time can other users read the private key.
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
                stream.write(content)
        except OSError as error:
            raise SignatureError(f"cannot write the key {file}: {error.strerror}") from error
    return path


def public_path(key: Path) -> Path:
    """Return the path of the public key that belongs to a private key's path."""
    return key.with_name(f"{key.name}.pub")


def read_keyid(key: Path) -> str:
    """Return the id of a key file, private or public: SHA-256 of the 32 bytes of its public key."""
    _need_cryptography()
    if b"PRIVATE KEY" in _read(key, "the key"):
        return _keyid(_read_private(key).public_key())
    return _keyid(_read_public(key))


def sign_receipt(run: Path, key: Path) -> Path:
    """Sign the receipt of a run folder; return the envelope's path.

    Signing again with the same key writes the same bytes. A signature by another key, or of another
    receipt, is not overwritten.

    Example:
        >>> sign_receipt(Path("runs/demo"), Path("key.pem"))
    """
    _need_cryptography()
    private = _read_private(Path(key))
    receipt = _read_receipt(Path(run))
    signature = private.sign(encode_pae(PAYLOAD_TYPE, receipt))
    content = _write_envelope(receipt, _keyid(private.public_key()), signature)
    out = Path(run) / ENVELOPE
    if os.path.lexists(out) and _read(out, "the envelope") != content:
        raise SignatureError(
            f"{out} holds another signature, of another key or receipt; remove it to sign again"
        )
    try:
        write_atomic(out, content)
    except OSError as error:
        raise SignatureError(f"cannot write {out}: {error.strerror}") from error
    return out


def check_signature(run: Path, public_key: Path) -> str:
    """Return the id of the key that signed a run's receipt; raise an error if it did not.

    This checks that the key signed the bytes of ``receipt.json``. `validate` checks that the files
    are those the receipt names.
    """
    _need_cryptography()
    from cryptography.exceptions import InvalidSignature

    # [Step 1] There must be an envelope, and it must contain this receipt and no other.
    public = _read_public(Path(public_key))
    receipt, file = _read_receipt(Path(run)), Path(run) / ENVELOPE
    if not file.is_file():
        raise SignatureError(
            f"{run} has no {ENVELOPE}, so it is not signed: run `seedless sign {run} --key KEY`"
        )
    payload, signer, signature = _read_envelope(file)
    if payload != receipt:
        raise SignatureError(
            f"{file} signs another receipt (sha256 {_short(payload)}) than the {RECEIPT} next to "
            f"it (sha256 {_short(receipt)}); one of the two was changed or comes from another run"
        )
    # [Step 2] It must be signed with the expected key.
    if signer != _keyid(public):
        raise SignatureError(
            f"{file}: expected a signature by key {_keyid(public)} ({public_key}), got one by key "
            f"{signer}; check with the public key of the signer"
        )
    # [Step 3] The signature must be valid for these bytes.
    try:
        public.verify(signature, encode_pae(PAYLOAD_TYPE, payload))
    except InvalidSignature:
        raise SignatureError(
            f"{file}: the signature does not verify with key {signer}; the envelope was changed, "
            "or somebody without the private key made it"
        ) from None
    return signer


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
    content = _read(file, "the envelope")
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
    content = _read(run / RECEIPT, "the receipt")
    try:
        kind = json.loads(content)["_type"]
    except (ValueError, LookupError, TypeError, RecursionError):
        kind = "no such thing"
    if kind != STATEMENT:
        raise SignatureError(f"{run / RECEIPT}: expected a statement of {STATEMENT}, got {kind}")
    return content


def _read_private(file: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read(file, "the private key")
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise SignatureError(
            f"{file} is locked by a passphrase; unlock a copy with `openssl pkey -in {file}`"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = "; this is a public one, signing needs the private key" * (b"PUBLIC KEY" in content)
        raise SignatureError(f"{file}: expected an ed25519 private key in PEM form{hint}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{file}: expected an ed25519 private key, got a key of another kind")
    return key


def _read_public(file: Path) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _read(file, "the public key")
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        hint = f"; this is a private one, give {public_path(file)}" * (b"PRIVATE KEY" in content)
        raise SignatureError(f"{file}: expected an ed25519 public key in PEM form{hint}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"{file}: expected an ed25519 public key, got a key of another kind")
    return key


def _keyid(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read(file: Path, what: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise SignatureError(f"{file}: {what} cannot be read: {error.strerror}") from error


def _need_cryptography() -> None:
    """Raise an error that says how to install the one package that only signatures need."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: F401
    except ImportError as error:
        raise SeedlessError(
            "signatures need the package cryptography, which is not installed here: "
            "pip install 'seedless[sign]'"
        ) from error
