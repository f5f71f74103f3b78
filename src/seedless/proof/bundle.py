"""Bundles: a run, its receipt and the code behind it as one file that repeats to the byte.

A bundle is a zip file with the run folder's files at its top and ``source/`` and ``data/`` beside
them. Files are stored and not compressed: the bytes then depend on no version of zlib, what a
bundle unpacks to can never be larger than the bundle, and weights hardly compress anyway.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from seedless.core.errors import RunError
from seedless.core.files import hash_file
from seedless.proof import source
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import PAGE as REPORT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.receipt import explain_missing

EXTRA = ("source/", "data/")  # what may come along without the receipt naming it
_DATE = (1980, 1, 1, 0, 0, 0)  # the first a zip file can hold
_UTF8 = 0x800  # the only flag a bundle needs: a name beyond ASCII
_CHUNK = 2**20
# What zipfile raises on a damaged file.
_DAMAGE = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def write_bundle(
    run: Path, out: Path, extra: Mapping[str, Path] | None = None, *, force: bool = False
) -> str:
    """Write a run folder as one file; return the file's ``"sha256:..."``.

    Args:
        run: a folder with a receipt. Every file the receipt covers goes in, checked against its
            digest on the way; so do the signature and the report, where they are there.
        out: the file to write, whole or not at all.
        extra: more files by their names in the bundle, below ``source/`` or ``data/``.
        force: replace ``out`` where it is there already.
    """
    run, out = Path(run), Path(out)
    if os.path.lexists(out) and not force:
        raise RunError(f"{out} is there already; give another name, or --force to replace it")
    digests = _read_run(run)
    files = {name: run / name for name in digests}
    files |= {name: run / name for name in (ENVELOPE, REPORT) if (run / name).is_file()}
    for name, file in (extra or {}).items():
        if not name.startswith(EXTRA):
            raise RunError(f"expected a name below {' or '.join(EXTRA)}, got {name!r}")
        if name in files:
            raise RunError(f"{name!r} is a file of the run {run}; it cannot come along twice")
        files[name] = Path(file)
    _check_names(files, run)
    for name, file in files.items():
        if not file.is_file():
            raise RunError(f"{file} is not there, and the bundle needs it as {name!r}")
        if out.exists() and file.samefile(out):
            raise RunError(f"{out} is itself a file of the bundle; give another name")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".seedless.", dir=out.parent) as folder:
            temporary = Path(folder) / "bundle"
            _pack(files, digests, temporary)
            digest = hash_file(temporary)
            os.replace(temporary, out)
    except OSError as error:
        raise RunError(f"cannot bundle {run} as {out}: {error.strerror or error}") from error
    return digest


def open_bundle(path: Path, into: Path) -> Path:
    """Unpack a bundle as the folder ``into``, new or empty; return that folder.

    Only plain files with the names a bundle may hold are written, and only if every file the
    receipt covers is there with its digest. A refusal leaves nothing behind.
    """
    path, into = Path(path), Path(into)
    if os.path.lexists(into) and not (into.is_dir() and not any(into.iterdir())):
        raise RunError(f"expected a new or empty folder to unpack into, got {into}")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _check_entries(archive.infolist(), path)
            digests = _read_covered(archive.read(entries[RECEIPT]), f"{RECEIPT} of {path}")
            _check_contents(entries, digests, path)
            into.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".seedless.", dir=into.parent) as folder:
                inside = Path(folder) / "run"
                inside.mkdir()
                _unpack(archive, entries, digests, inside)
                if into.is_dir():
                    shutil.copymode(into, inside)  # a private folder stays private
                os.rename(inside, into)
    except RunError:
        raise
    except _DAMAGE as error:
        raise RunError(
            f"{path} is no zip file, or is damaged or cut short ({error}); get the bundle again"
        ) from error
    except OSError as error:
        raise RunError(
            f"cannot open {path} as a bundle in {into}: {error.strerror or error}"
        ) from error
    return into


def is_bundle(path: Path) -> bool:
    """Say whether a path is to be opened as a bundle: a file that begins as zip files do.

    One cut short is still a bundle, so that `open_bundle` can say what is wrong with it.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def list_source() -> dict[str, Path]:
    """Return every file of the installed package by its name in a bundle, sorted.

    These are the files of the receipt's source digest, and the mark that the package is typed.
    """
    found = {**source.list_source(), "py.typed": source.PACKAGE / "py.typed"}
    return {f"source/{source.PACKAGE.name}/{name}": found[name] for name in sorted(found)}


def _read_run(run: Path) -> dict[str, str]:
    """Return the digest of each file that a run's receipt covers, and of the receipt itself."""
    try:
        receipt = (run / RECEIPT).read_bytes()
    except FileNotFoundError:
        raise RunError(explain_missing(run)) from None
    except OSError as error:
        raise RunError(f"cannot read {run / RECEIPT}: {error.strerror}") from error
    return _read_covered(receipt, str(run / RECEIPT))


def _read_covered(receipt: bytes, where: str) -> dict[str, str]:
    """Return name -> digest from a receipt's ``predicate.files``, with the receipt as one more."""
    try:
        files = json.loads(receipt)["predicate"]["files"]
        covered = {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
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


def _check_names(names: Iterable[str], where: Path) -> None:
    """Refuse names that could lead out of the folder, or need a file and a folder in one place."""
    known = set(names)
    for name in sorted(known):
        if (
            not {"", ".", ".."}.isdisjoint(name.split("/"))
            or "\\" in name
            or re.match("[A-Za-z]:", name)
            or not name.isprintable()
        ):
            raise RunError(f"{where}: the name {name!r} could lead out of its folder; refused")
        for parent in PurePosixPath(name).parents:
            if str(parent) in known:
                raise RunError(f"{where}: {str(parent)!r} is both a file and a folder; refused")


def _check_entries(infos: list[zipfile.ZipInfo], path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return a zip file's entries by name, if each is a plain stored file that fits in it."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.orig_filename  # before zipfile cuts it at a NUL
        if name in entries:
            raise RunError(f"{path} holds {name!r} twice; refused")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG) or info.is_dir():
            raise RunError(f"{path} holds {name!r}, which is no plain file; refused")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ~_UTF8:
            raise RunError(
                f"{path}: {name!r} is compressed, encrypted or streamed, and a bundle's files are "
                "none of these; make it with `seedless bundle`"
            )
        if info.file_size != info.compress_size:
            raise RunError(
                f"{path}: {name!r} declares {info.file_size} bytes and holds {info.compress_size}; "
                "refused"
            )
        entries[name] = info
    _check_names(entries, path)
    total, size = sum(info.file_size for info in infos), path.stat().st_size
    if total > size:
        raise RunError(f"{path} declares {total} bytes of files and has {size}; refused")
    if RECEIPT not in entries:
        raise RunError(f"{path} is a zip file and no bundle: it holds no {RECEIPT}")
    return entries


def _check_contents(
    names: Mapping[str, zipfile.ZipInfo], digests: Mapping[str, str], path: Path
) -> None:
    """Refuse a bundle that lacks a file its receipt covers, or holds one nobody asked for."""
    for name in digests:
        if name not in names:
            raise RunError(f"{path} lacks {name!r}, which its receipt covers; bundle it again")
    for name in names:
        if name not in digests and name not in (ENVELOPE, REPORT) and not name.startswith(EXTRA):
            raise RunError(f"{path} holds {name!r}, which its receipt does not cover; refused")


def _pack(files: Mapping[str, Path], digests: Mapping[str, str], out: Path) -> None:
    with zipfile.ZipFile(out, "x") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            with open(files[name], "rb") as given:
                # Known before the first byte, it tells zipfile whether the header needs 64 bits.
                info.file_size = os.fstat(given.fileno()).st_size
                with archive.open(info, "w") as target:
                    found = _copy(given, target)
            _check_digest(str(files[name]), found, digests.get(name))


def _unpack(
    archive: zipfile.ZipFile,
    entries: Mapping[str, zipfile.ZipInfo],
    digests: Mapping[str, str],
    folder: Path,
) -> None:
    for name, info in entries.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(info) as given, open(place, "xb") as target:
            found = _copy(given, target)
        _check_digest(f"{name} of {archive.filename}", found, digests.get(name))


def _copy(given: IO[bytes], target: IO[bytes]) -> str:
    """Copy a stream; return the digest of what was copied, which is then what was checked."""
    hasher = hashlib.sha256()
    while chunk := given.read(_CHUNK):
        hasher.update(chunk)
        target.write(chunk)
    return f"sha256:{hasher.hexdigest()}"


def _check_digest(what: str, found: str, expected: str | None) -> None:
    if expected not in (None, found):
        raise RunError(
            f"{what} is not the file its receipt covers: expected {expected}, got {found}; "
            "it was changed after the run was sealed"
        )
