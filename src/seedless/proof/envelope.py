"""DSSE envelopes: a statement, its type, and one ed25519 signature over both.

They are written in canonical JSON and only accepted in that form, so that no byte of one can change
unnoticed. Format: github.com/secure-systems-lab/dsse (protocol.md, envelope.md).
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import parse_json
from seedless.core.digests import canonical_json
from seedless.proof.keys import (
    SignatureError,
    identify_key,
    need_cryptography,
    read_ed25519_private,
    read_ed25519_public,
    read_file,
)

PAYLOAD_TYPE = "application/vnd.in-toto+json"
SIGNATURE_BYTES = 64


def sign_payload(payload: bytes, key: Path) -> bytes:
    """Return an envelope with a statement's bytes, signed with the private key of a file.

    The same bytes and key give the same envelope.
    """
    need_cryptography()
    private = read_ed25519_private(Path(key))
    signature = private.sign(encode_pae(PAYLOAD_TYPE, payload))
    return write_envelope(payload, identify_key(private.public_key()), signature)


def check_envelope(file: Path, public_key: Path) -> tuple[bytes, str]:
    """Return the payload of an envelope and the id of the key that signed it.

    It is an error if this key did not sign these bytes. What they say is the caller's to check.

    Example:
        >>> payload, keyid = check_envelope(Path("summary.dsse.json"), Path("verifier.pem.pub"))
    """
    need_cryptography()
    from cryptography.exceptions import InvalidSignature

    public = read_ed25519_public(Path(public_key))
    payload, signer, signature = read_envelope(file)
    # [Step 1] It must be signed with the expected key.
    if signer != identify_key(public):
        raise SignatureError(
            f"{file}: expected a signature by key {identify_key(public)} ({public_key}), got one "
            f"by key {signer}; check with the public key of the signer"
        )
    # [Step 2] The signature must be valid for these bytes.
    try:
        public.verify(signature, encode_pae(PAYLOAD_TYPE, payload))
    except InvalidSignature:
        raise SignatureError(
            f"{file}: the signature does not verify with key {signer}; the envelope was changed, "
            "or somebody without the private key made it"
        ) from None
    return payload, signer


def encode_pae(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: the bytes that are signed.

    ``"DSSEv1" SP LEN(type) SP type SP LEN(payload) SP payload``, lengths in bytes, as decimals.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def write_envelope(payload: bytes, keyid: str, signature: bytes) -> bytes:
    """Return an envelope in the one form that is accepted."""
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
    }
    return canonical_json(envelope) + b"\n"


def read_envelope(file: Path) -> tuple[bytes, str, bytes]:
    """Return (payload, keyid, signature) of an envelope that is exactly as it would be written."""
    if file.is_symlink() or not file.is_file():
        raise SignatureError(f"{file}: expected a plain file, got a link, folder or device")
    content = read_file(file, "the envelope")
    try:
        envelope = parse_json(content, str(file), error=SignatureError)
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
        if write_envelope(payload, keyid, signature) != content:
            raise ValueError("it is not in canonical form")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise SignatureError(
            f"{file}: expected a DSSE envelope with one signature over {PAYLOAD_TYPE}, as "
            f"`seedless sign` writes it, got a malformed one: {reason}"
        ) from error
    return payload, keyid, signature
