"""Bundles: a run, its receipt and its source code in one file; the same run gives the same bytes.

A bundle is a zip file with the run folder's files at its top level, and ``source/`` and ``data/``.
Files are stored without compression: so the bytes do not depend on the version of zlib, a bundle
never unpacks to more than its own size, and weights hardly compress anyway.
"""

import hashlib
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from seedless.core.archive import Rules, check_names, unpack
from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.errors import RunError
from seedless.core.files import hash_file, replace_when_written
from seedless.proof import source_digest
from seedless.proof.receipt import ATTESTATIONS, explain_missing
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import PAGE as REPORT
from seedless.proof.receipt import SIGNATURE as ENVELOPE

EXTRA = ("source/", "data/")  # folders that the receipt need not cover
BESIDE = (ENVELOPE, REPORT, *ATTESTATIONS)  # files next to those that the receipt covers
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can hold
# Nothing is compressed, so an honest bundle unpacks to less than its own size.
RULES = Rules(RunError, "get the bundle again, made with `seedless bundle`", max_ratio=1)


def write_bundle(
    run: Path, out: Path, extra: Mapping[str, Path] | None = None, *, force: bool = False
) -> str:
    """Write a run folder as one file; return the file's ``"sha256:..."``.

    Args:
        run: a folder with a receipt. The bundle holds every file that the receipt covers, checked
            against its digest, and the signature, the attestations and the report where they exist.
        out: the file to write, completely or not at all.
        extra: more files by their names in the bundle, below ``source/`` or ``data/``.
        force: replace ``out`` if it exists.

    Example:
        >>> write_bundle(Path("runs/demo"), Path("demo.bundle.zip"))
    """
    # [Step 1] List the files and their names in the bundle.
    run, out = Path(run), Path(out)
    if os.path.lexists(out) and not force:
        raise RunError(f"{out} is there already; give another name, or --force to replace it")
    digests = _read_run(run)
    files = {name: run / name for name in digests}
    files |= {name: run / name for name in BESIDE if (run / name).is_file()}
    for name, file in (extra or {}).items():
        if not name.startswith(EXTRA):
            raise RunError(f"expected a name below {' or '.join(EXTRA)}, got {name!r}")
        if name in files:
            raise RunError(f"{name!r} is a file of the run {run}; it cannot be added twice")
        files[name] = Path(file)
    # [Step 2] Refuse what could not be unpacked again, before anything is written.
    check_names(files, run, RULES)
    for name, file in files.items():
        if not file.is_file():
            raise RunError(f"{file} is not there, and the bundle needs it as {name!r}")
        if out.exists() and file.samefile(out):
            raise RunError(f"{out} is itself a file of the bundle; give another name")
    # [Step 3] Write it, checking the bytes that go in, and rename it only if all are right.
    try:
        with replace_when_written(out) as temporary:
            _check_digests(_write_zip(temporary, files), digests, run)
            digest = hash_file(temporary)
    except OSError as error:
        raise RunError(f"cannot bundle {run} as {out}: {error.strerror or error}") from error
    return digest


def open_bundle(path: Path, into: Path) -> Path:
    """Unpack a bundle as the folder ``into``, new or empty; return that folder.

    Only plain files with the names a bundle may hold are written, and only if every file that the
    receipt covers has its digest. A refused bundle leaves nothing behind.

    Example:
        >>> open_bundle(Path("demo.bundle.zip"), Path("runs/demo"))
    """
    path, into = Path(path), Path(into)
    if os.path.lexists(into) and not (into.is_dir() and not any(into.iterdir())):
        raise RunError(f"expected a new or empty folder to unpack into, got {into}")
    # A parent that does not exist is made at the end, so that a refusal leaves nothing behind.
    existing = next(parent for parent in into.absolute().parents if parent.is_dir())
    with unpack(path, "zip", existing, RULES) as folder:
        files = [file for file in folder.rglob("*") if file.is_file()]
        actual = {file.relative_to(folder).as_posix(): hash_file(file) for file in files}
        if RECEIPT not in actual:
            raise RunError(f"{path} is a zip file and no bundle: it holds no {RECEIPT}")
        digests = _read_covered(read_file(folder / RECEIPT, MAX_JSON_BYTES), f"{RECEIPT} of {path}")
        _check_contents(actual, digests, path)
        _check_digests(actual, digests, path)
        if into.is_dir():
            shutil.copymode(into, folder)  # a private folder stays private
        into.parent.mkdir(parents=True, exist_ok=True)
        os.rename(folder, into)
    return into


def is_bundle(path: Path) -> bool:
    """Whether a path is a file that begins as zip files do.

    A truncated bundle is still one, so that `open_bundle` can say what is wrong with it.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def list_source_files() -> dict[str, Path]:
    """Return every file of the installed package by its name in a bundle, sorted.

    These are the files of the receipt's source digest, and ``py.typed``.
    """
    files = {**source_digest.list_source(), "py.typed": source_digest.PACKAGE / "py.typed"}
    return {f"source/{source_digest.PACKAGE.name}/{name}": files[name] for name in sorted(files)}


def _read_run(run: Path) -> dict[str, str]:
    """Return the digest of each file that a run's receipt covers, and of the receipt itself."""
    try:
        receipt = read_file(run / RECEIPT, MAX_JSON_BYTES)
    except FileNotFoundError:
        raise RunError(explain_missing(run)) from None
    except OSError as error:
        raise RunError(f"cannot read {run / RECEIPT}: {error.strerror}") from error
    return _read_covered(receipt, str(run / RECEIPT))


def _read_covered(receipt: bytes, where: str) -> dict[str, str]:
    """Return name -> digest from a receipt's ``predicate.files``, with the receipt itself added."""
    try:
        files = parse_json(receipt, where)["predicate"]["files"]
        covered = {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RunError(
            f"{where}: expected a receipt that lists files under predicate.files, got something "
            "else; was it made by `seedless train`?"
        ) from error
    for name, digest in covered.items():
        if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
            raise RunError(f"{where}: expected sha256:... for {name!r}, got {digest!r}")
    if RECEIPT in covered:
        raise RunError(f"{where} lists {RECEIPT}: no file can hold its own digest")
    return {**covered, RECEIPT: f"sha256:{hashlib.sha256(receipt).hexdigest()}"}


def _write_zip(path: Path, files: Mapping[str, Path]) -> dict[str, str]:
    """Write a zip file that holds ``files`` by name; return the digest of each, as it was copied.

    Names are sorted and carry no time, owner or mode: the same files give the same bytes.
    """
    digests = {}
    with zipfile.ZipFile(path, "x") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, FIRST_DATE)
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            hasher = hashlib.sha256()
            with open(files[name], "rb") as source:
                # zipfile needs the size before the first byte, to choose a 32- or 64-bit header.
                info.file_size = os.fstat(source.fileno()).st_size
                with archive.open(info, "w") as target:
                    while chunk := source.read(2**20):
                        hasher.update(chunk)
                        target.write(chunk)
            digests[name] = f"sha256:{hasher.hexdigest()}"
    return digests


def _check_contents(names: Iterable[str], digests: Mapping[str, str], path: Path) -> None:
    """Refuse a bundle that lacks a file its receipt covers, or holds one that nothing covers."""
    if missing := set(digests) - set(names):
        raise RunError(f"{path} lacks {min(missing)!r}, which its receipt covers; bundle it again")
    for name in names:
        if name not in digests and name not in BESIDE and not name.startswith(EXTRA):
            raise RunError(f"{path} holds {name!r}, which its receipt does not cover; refused")


def _check_digests(actual: Mapping[str, str], digests: Mapping[str, str], where: Path) -> None:
    for name, expected in digests.items():
        if actual[name] != expected:
            raise RunError(
                f"{name} of {where} is not the file its receipt covers: expected {expected}, got "
                f"{actual[name]}; it was changed after the run was sealed"
            )
