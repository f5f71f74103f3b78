"""Key files: ed25519 keys sign receipts, P-256 keys sign models for other tools.

All are PEM files without a passphrase (PKCS8, SubjectPublicKeyInfo). RFC 8032 (ed25519), FIPS 186-5
(ECDSA over the curves P-256, P-384 and P-521). New keys of the second kind are P-256; signatures
that the published tools make with the two larger curves are checked too.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seedless.core import bounded_reading
from seedless.core.bounded_reading import MAX_JSON_BYTES, MAX_KEY_FILE_BYTES
from seedless.core.errors import SeedlessError
from seedless.core.files import write_atomic

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

# Ed25519 computes modulo this prime. The five values of y that its 8 points of small order have: of
# order 1 and 2 (1 and -1), of order 4 (0), and of order 8 (the last two).
FIELD_PRIME = 2**255 - 19
_ORDER_8_Y = 0x5FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL_ORDER_Y = frozenset({1, FIELD_PRIME - 1, 0, _ORDER_8_Y, FIELD_PRIME - _ORDER_8_Y})
KeyKind = Literal["ed25519", "P-256"]
# The curves of ECDSA that the published tools take, by their names in `cryptography`.
CURVES = ("secp256r1", "secp384r1", "secp521r1")
# What a key of each kind is for, and the command that makes one.
USES = {
    "ed25519": "receipts and attestations are signed with an ed25519 key: "
    "`seedless sign --new-key KEY.pem`",
    "P-256": "model signatures need a P-256 key: `seedless sign --new-key KEY.pem --model-signing`",
}


class SignatureError(SeedlessError):
    """A receipt that cannot be signed, or a signature that is not valid."""


def make_key(path: Path, kind: KeyKind = "ed25519") -> Path:
    """Write a new private key to ``path``, for its owner only, and the public key to PATH.pub.

    Both are PEM (PKCS8, SubjectPublicKeyInfo) without a passphrase. Nothing is overwritten.

    Example:
        >>> make_key(Path("key.pem"))
    """
    need_cryptography()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = Path(path)
    public = public_path(path)
    for file in (path, public):
        if os.path.lexists(file):
            raise SignatureError(f"{file} is there already; keys are never overwritten")
    if (path.absolute().parent / "receipt.json").exists():
        raise SignatureError(
            f"{path} would be in the folder of a run, which others may get and which may hold no "
            "other files: write the key elsewhere"
        )
    key: Any = (
        Ed25519PrivateKey.generate()
        if kind == "ed25519"
        else ec.generate_private_key(ec.SECP256R1())
    )
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    for file, content, mode in (
        (public, encode_public(key.public_key()), 0o644),
        (path, secret, 0o600),
    ):
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


def encode_public(key: Ed25519PublicKey | EllipticCurvePublicKey) -> bytes:
    """Return a public key as PEM (SubjectPublicKeyInfo)."""
    from cryptography.hazmat.primitives import serialization as form

    return key.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


def read_keyid(key: Path) -> str:
    """Return the id of a key file, private or public, as `identify_key` defines it."""
    need_cryptography()
    if b"PRIVATE KEY" in _read_key(key, "the key"):
        private = _load_private(key, "ed25519")
        on_curve = _is_on_curve(private, CURVES)
        return identify_key((private if on_curve else read_ed25519_private(key)).public_key())
    public = _load_public(key, "ed25519")
    return identify_key(public if _is_on_curve(public, CURVES) else read_ed25519_public(key))


def identify_key(key: Ed25519PublicKey | EllipticCurvePublicKey) -> str:
    """Return a key's id in hex: SHA-256 of the 32 bytes of an ed25519 key, of the PEM of another.

    For keys over an elliptic curve this is the hint that the published model-signing tool writes.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    content = key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else encode_public(key)
    return hashlib.sha256(content).hexdigest()


def read_ed25519_private(file: Path) -> Ed25519PrivateKey:
    """Return the ed25519 private key of a PEM file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _load_private(file, "ed25519")
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(_describe_other(file, "private", "ed25519"))
    return key


def read_ed25519_public(file: Path) -> Ed25519PublicKey:
    """Return the ed25519 public key of a PEM file; an error is about that file.

    A key of small order is refused: with it a signature can be made that is valid for any message.
    """
    need_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _load_public(file, "ed25519")
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(_describe_other(file, "public", "ed25519"))
    if has_small_order(key.public_bytes_raw()):
        raise SignatureError(
            f"{file}: expected the public key of somebody who signs, got a point of small order; "
            "anyone can make signatures that are valid for it, of any receipt"
        )
    return key


def has_small_order(key: bytes) -> bool:
    """Whether 32 bytes are one of the 8 points of ed25519 whose order divides 8, in any encoding.

    The y-coordinate alone decides. Bit 255 is the sign of x, and y may be written as y + p.
    """
    y = int.from_bytes(key, "little") & (2**255 - 1)
    return y % FIELD_PRIME in SMALL_ORDER_Y


def read_ecdsa_private(file: Path) -> EllipticCurvePrivateKey:
    """Return the private key over P-256 of a PEM file."""
    key = _load_private(file, "P-256")
    if not _is_on_curve(key, CURVES[:1]):
        raise SignatureError(_describe_other(file, "private", "P-256"))
    return key  # type: ignore[no-any-return]  # its type was compared by its curve


def read_ecdsa_public(file: Path) -> EllipticCurvePublicKey:
    """Return the public key over P-256, P-384 or P-521 of a PEM file."""
    key = _load_public(file, "P-256")
    if not _is_on_curve(key, CURVES):
        raise SignatureError(_describe_other(file, "public", "P-256"))
    return key  # type: ignore[no-any-return]  # its type was compared by its curve


def is_ecdsa_public(file: Path) -> bool:
    """Whether a PEM file holds a public key of the kind that signs models, not receipts."""
    need_cryptography()
    return _is_on_curve(_load_public(file, "ed25519"), CURVES)


def read_file(
    file: Path, what: str, max_bytes: int = MAX_JSON_BYTES, *, follow_links: bool = False
) -> bytes:
    """Return the bytes of a plain file; the error says ``what`` could not be read."""
    try:
        return bounded_reading.read_file(
            Path(file), max_bytes, follow_links=follow_links, error=SignatureError
        )
    except OSError as error:
        raise SignatureError(f"{file}: {what} cannot be read: {error.strerror}") from error


def write_signature(out: Path, content: bytes, signed: str) -> Path:
    """Write a signature and return its path; another signature there is never overwritten.

    ``signed``: what else than the key may differ, for the message.
    """
    if os.path.lexists(out) and read_file(out, "the signature") != content:
        raise SignatureError(
            f"{out} holds another signature, of another key or {signed}; remove it to sign again"
        )
    try:
        write_atomic(out, content)
    except OSError as error:
        raise SignatureError(f"cannot write {out}: {error.strerror}") from error
    return out


def need_cryptography() -> None:
    """Raise an error that says how to install the one package that only signatures need."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: F401
    except ImportError as error:
        raise SeedlessError(
            "signatures need the package cryptography, which is not installed here: "
            "pip install 'seedless[sign]'"
        ) from error


def _read_key(file: Path, what: str) -> bytes:
    """Return the bytes of a key file, which the user named: it may be a link."""
    return read_file(file, what, MAX_KEY_FILE_BYTES, follow_links=True)


def _load_private(file: Path, expected: KeyKind) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read_key(file, "the private key")
    try:
        return load_pem_private_key(content, password=None)
    except TypeError:
        raise SignatureError(
            f"{file} is locked by a passphrase; unlock a copy with `openssl pkey -in {file}`"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = "; this is a public one, signing needs the private key" * (b"PUBLIC KEY" in content)
        raise SignatureError(
            f"{file}: expected {_name(expected)} private key in PEM form{hint}"
        ) from None


def _load_public(file: Path, expected: KeyKind) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _read_key(file, "the public key")
    try:
        return load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        hint = f"; this is a private one, give {public_path(file)}" * (b"PRIVATE KEY" in content)
        raise SignatureError(
            f"{file}: expected {_name(expected)} public key in PEM form{hint}"
        ) from None


def _is_on_curve(key: Any, curves: tuple[str, ...]) -> bool:
    return getattr(getattr(key, "curve", None), "name", None) in curves


def _describe_other(file: Path, half: str, expected: KeyKind) -> str:
    expectation = f"expected {_name(expected)} {half} key, got a key of another kind"
    return f"{file}: {expectation}; {USES[expected]}"


def _name(kind: KeyKind) -> str:
    return f"{'an' if kind == 'ed25519' else 'a'} {kind}"
