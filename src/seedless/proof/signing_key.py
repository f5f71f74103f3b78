"""Ed25519 keys in PEM files: make a pair, read one, and name it by its id.

Formats: RFC 8032 (ed25519), RFC 8410 (its PEM files).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.core.errors import SeedlessError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

# Ed25519 computes modulo this prime. The five values of y that its 8 points of small order have: of
# order 1 and 2 (1 and -1), of order 4 (0), and of order 8 (the last two).
FIELD_PRIME = 2**255 - 19
_ORDER_8_Y = 0x5FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL_ORDER_Y = frozenset({1, FIELD_PRIME - 1, 0, _ORDER_8_Y, FIELD_PRIME - _ORDER_8_Y})


class SignatureError(SeedlessError):
    """A receipt that cannot be signed, or a signature that is not valid."""


def make_key(path: Path) -> Path:
    """Write a new private key to ``path``, for its owner only, and the public key to PATH.pub.

    Both are PEM (PKCS8, SubjectPublicKeyInfo) without a passphrase. Nothing is overwritten.

    Example:
        >>> make_key(Path("key.pem"))
    """
    require_cryptography()
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
    if b"PRIVATE KEY" in read_bytes(key, "the key"):
        return digest_key(read_private_key(key).public_key())
    return digest_key(read_public_key(key))


def read_public_key(file: Path) -> Ed25519PublicKey:
    """Return the public key of a PEM file; raise an error about the file if it has none.

    A key of small order is refused: with it a signature can be made that is valid for any receipt.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = read_bytes(file, "the public key")
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        hint = f"; this is a private one, give {public_path(file)}" * (b"PRIVATE KEY" in content)
        raise SignatureError(f"{file}: expected an ed25519 public key in PEM form{hint}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"{file}: expected an ed25519 public key, got a key of another kind")
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


def read_private_key(file: Path) -> Ed25519PrivateKey:
    """Return the private key of a PEM file; raise an error about the file if it has none."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = read_bytes(file, "the private key")
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


def digest_key(key: Ed25519PublicKey) -> str:
    """Return the id of a public key: the hex SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def read_bytes(file: Path, what: str) -> bytes:
    """Return the content of a file; the error says what the file should have been."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise SignatureError(f"{file}: {what} cannot be read: {error.strerror}") from error


def require_cryptography() -> None:
    """Raise an error that says how to install the one package that only signatures need."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: F401
    except ImportError as error:
        raise SeedlessError(
            "signatures need the package cryptography, which is not installed here: "
            "pip install 'seedless[sign]'"
        ) from error
