"""OpenSSF Model Signing: a signature over the files of a run that the published tool verifies.

``model.sig`` is a Sigstore bundle with a DSSE envelope. Its payload is an in-toto Statement that
lists every signed file with its SHA-256; its subject is the SHA-256 over those hashes in the order
of the list. Format: https://github.com/ossf/model-signing-spec. The key is one over P-256, because
the published tool takes no ed25519 keys; signing by an online identity is not supported here.

Signed are receipt.json and every file that it covers. Files that may be added later without
changing the run (a report, other signatures) are listed as ignored, and the published tool
respects that list.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.core.bounded_reading import parse_json
from seedless.core.digests import canonical_json, get_hex
from seedless.core.files import hash_file
from seedless.proof.envelope import PAYLOAD_TYPE, encode_pae
from seedless.proof.keys import (
    SignatureError,
    identify_key,
    need_cryptography,
    read_ecdsa_private,
    read_ecdsa_public,
    read_file,
    write_signature,
)
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import STATEMENT, UNCOVERED, WEIGHTS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

FILE = "model.sig"
PREDICATE = "https://model_signing/signature/v1.0"
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
# Files of a run folder that are not signed: they can be added, or made again, after signing.
IGNORED = tuple(sorted({*UNCOVERED, FILE} - {RECEIPT}))
MAX_PROBLEMS = 10  # a signature can list any number of files; so many problems are named
# What the published tool ignores besides, unless it is told otherwise.
GIT_PATHS = (".git", ".gitattributes", ".github", ".gitignore")


def sign_model(run: Path, files: Mapping[str, str], key: Path) -> Path:
    """Sign the files of a validated run; return the path of ``model.sig``.

    Signing again with the same key writes the same bytes. Another signature is not overwritten.

    Args:
        run: the run folder.
        files: "sha256:..." of receipt.json and of each file that it covers.
        key: a P-256 private key.

    Example:
        >>> sign_model(Path("runs/demo"), files, Path("model.pem"))
    """
    need_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm

    private = read_ecdsa_private(Path(key))
    if WEIGHTS not in files:
        raise SignatureError(f"{run} is a stripped run without {WEIGHTS}: sign the complete run")
    payload = make_statement(Path(os.path.abspath(run)).name, files)
    try:
        signature = private.sign(encode_pae(PAYLOAD_TYPE, payload), _choose_hash(256, repeat=True))
    except UnsupportedAlgorithm:
        raise SignatureError(
            "this build of cryptography cannot make repeatable ECDSA signatures (RFC 6979), which "
            "need OpenSSL 3.2: install the published wheel of cryptography, version 43 or later"
        ) from None
    content = encode_sigstore_bundle(payload, identify_key(private.public_key()), signature)
    return write_signature(Path(run) / FILE, content, "other files")


def check_model_signature(run: Path, files: Mapping[str, str], public_key: Path) -> str:
    """Return the id of the key that signed the files of a run; raise an error if it did not.

    Args:
        run: the run folder, which was validated.
        files: "sha256:..." of receipt.json and of each file that it covers, as they are there.
        public_key: a key over P-256, P-384 or P-521.
    """
    need_cryptography()
    from cryptography.exceptions import InvalidSignature

    # [Step 1] There must be a signature by this key.
    public, file = read_ecdsa_public(Path(public_key)), Path(run) / FILE
    if not file.is_file():
        raise SignatureError(
            f"{run} has no {FILE}, so its files are not signed with such a key: run "
            f"`seedless sign {run} --model-signing --key KEY`"
        )
    payload, hint, signature = read_sigstore_bundle(file)
    expected = identify_key(public)
    if hint != expected:
        raise SignatureError(
            f"{file}: expected a signature by key {expected} ({public_key}), got one by another "
            "key; check with the public key of the signer"
        )
    # [Step 2] The signature must be valid for the list of files.
    try:
        public.verify(signature, encode_pae(PAYLOAD_TYPE, payload), _choose_hash(public.key_size))
    except InvalidSignature:
        raise SignatureError(
            f"{file}: the signature does not verify with key {expected}; the file was changed, or "
            "somebody without the private key made it"
        ) from None
    # [Step 3] The list must be that of the files of this run.
    if problems := compare_files(run, files, payload):
        raise SignatureError(f"{file}: {problems[0]}")
    return expected


def check_listed_files(run: Path, files: Mapping[str, str]) -> list[str]:
    """Return how the signature of a run and its files disagree, a sentence each; needs no key."""
    try:
        payload, _, _ = read_sigstore_bundle(run / FILE)
        problems = compare_files(run, files, payload)[:MAX_PROBLEMS]
        return [f"{FILE}: {problem}" for problem in problems]
    except SignatureError as error:
        return [str(error)]


def make_statement(name: str, files: Mapping[str, str]) -> bytes:
    """Return the statement that is signed: the files of a run, and those that are ignored."""
    resources = [
        {"algorithm": "sha256", "digest": get_hex(files[file]), "name": file}
        for file in sorted(files)
    ]
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest_resources(resources)}}],
        "predicateType": PREDICATE,
        "predicate": {
            "resources": resources,
            "serialization": {
                "allow_symlinks": False,
                "hash_type": "sha256",
                "ignore_paths": sorted({*IGNORED, *GIT_PATHS}),
                "method": "files",
            },
        },
    }
    return canonical_json(statement)


def digest_resources(resources: list[dict[str, str]]) -> str:
    """Return the hex SHA-256 over the hashes of the listed files, in the order of the list."""
    return hashlib.sha256(b"".join(bytes.fromhex(one["digest"]) for one in resources)).hexdigest()


def compare_files(run: Path, files: Mapping[str, str], payload: bytes) -> list[str]:
    """Return how a signed list of files and the files of a run disagree, a sentence each."""
    # [Step 1] The list itself must be well-formed, and of a kind that is checked here.
    try:
        signed, ignored = _parse_statement(payload)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return [f"what it signs is not a list of files as it must be: {error!r}"]
    # [Step 2] Every file of the run is signed as it is.
    problems = []
    for name, digest in files.items():
        if name not in signed:
            problems.append(f"it leaves out {name}, so that file could be replaced")
        elif f"sha256:{signed[name]}" != digest:
            problems.append(f"{name} is not the file that was signed")
    # [Step 3] Files next to those may be signed, or be listed as ignored.
    beside = {name: run / name for name in IGNORED if name != FILE and (run / name).is_file()}
    for name in sorted({*signed, *beside} - {*files}):
        if name not in beside:
            problems.append(f"it signs {name!r}, which is not in the folder")
        elif name in signed and f"sha256:{signed[name]}" != hash_file(beside[name]):
            problems.append(f"{name} is not the file that was signed")
        elif name not in signed and name not in ignored:
            problems.append(f"{name} was added after the files were signed")
    return problems


def encode_sigstore_bundle(payload: bytes, hint: str, signature: bytes) -> bytes:
    """Return a Sigstore bundle: the signed payload, the signature, and which key made it."""
    bundle = {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
        },
    }
    return canonical_json(bundle) + b"\n"


def read_sigstore_bundle(file: Path) -> tuple[bytes, str, bytes]:
    """Return (payload, key hint, signature) of a Sigstore bundle that a key signed."""
    content = read_file(file, "the signature")
    try:
        bundle = parse_json(content, str(file), error=SignatureError)
        if bundle["mediaType"] != MEDIA_TYPE:
            raise ValueError("it has another mediaType")
        envelope = bundle["dsseEnvelope"]
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise ValueError("it signs another type of payload")
        (signature,) = envelope["signatures"]
        hint = bundle["verificationMaterial"]["publicKey"]["hint"]
        if not isinstance(hint, str):
            raise TypeError("it does not name its key")
        return (
            base64.b64decode(envelope["payload"], validate=True),
            hint,
            base64.b64decode(signature["sig"], validate=True),
        )
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise SignatureError(
            f"{file}: expected a Sigstore bundle ({MEDIA_TYPE}) with one signature by a key, got "
            f"something else: {reason}"
        ) from None


def _parse_statement(payload: bytes) -> tuple[dict[str, str], set[str]]:
    """Return the hex SHA-256 of each signed file by name, and the paths that are ignored."""
    statement = parse_json(payload, "the payload", error=SignatureError)
    predicate = statement["predicate"]
    if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
        raise ValueError(f"expected a {STATEMENT} with predicate {PREDICATE}")
    how = predicate["serialization"]
    if how["method"] != "files" or how["hash_type"] != "sha256" or how["allow_symlinks"] is True:
        raise ValueError("expected the SHA-256 of whole files, and no links")
    resources = predicate["resources"]
    signed = {str(one["name"]): str(one["digest"]) for one in resources}
    if len(signed) != len(resources) or any(one["algorithm"] != "sha256" for one in resources):
        raise ValueError("expected each file once, with its SHA-256")
    (subject,) = statement["subject"]
    if subject["digest"]["sha256"] != digest_resources(resources):
        raise ValueError("the digest of the subject is not that of the listed files")
    return signed, {str(path) for path in how.get("ignore_paths", [])}


def _choose_hash(key_size: int, *, repeat: bool = False) -> ECDSA:
    """Return ECDSA with the hash of a key's size in bits; ``repeat``: by RFC 6979, for signing."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

    kinds = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
    return ECDSA(kinds[key_size], deterministic_signing=repeat)
