"""Bundles: a run, its receipt and its source code in one file; the same run gives the same bytes.

A bundle is a zip file with the run folder's files at its top level, and ``source/`` and ``data/``.
bundle_contents.py says what it holds. Files are stored without compression: so the bytes do not
depend on the version of zlib, a bundle never unpacks to more than its own size, and weights hardly
compress anyway.
"""

import hashlib
import os
import shutil
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedless.core.archive import Rules, check_names, unpack
from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.digests import is_digest
from seedless.core.errors import FORCE, RunError
from seedless.core.files import hash_file, replace_when_written
from seedless.core.zip_files import LOCAL_HEADER, has_other_bytes
from seedless.proof import source_digest
from seedless.proof.bundle_contents import DATA, SOURCE, check_contents, list_source_files
from seedless.proof.receipt import ATTESTATIONS, SIGNATURE, explain_missing
from seedless.proof.receipt import FILE as RECEIPT

FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can hold
# Nothing is compressed, so an honest bundle unpacks to less than its own size.
RULES = Rules(
    RunError,
    "get the bundle again, made with `seedless bundle`",
    max_ratio=1,
    max_members=20_000,  # a run has some ten files and its checkpoints, the package 400
)


def write_bundle(run: Path, out: Path, *, data: Path | None = None, force: bool = False) -> str:
    """Write a run folder as one file; return the file's ``"sha256:..."``.

    Args:
        run: the folder of a finished run, made by the release that is installed here. Every file
            that the receipt covers is checked against its digest.
        out: the file to write, completely or not at all.
        data: a folder of `write_packed` with the data of the run, to be added.
        force: replace ``out`` if it exists.

    Example:
        >>> write_bundle(Path("runs/demo"), Path("demo.bundle.zip"))
    """
    # [Step 1] List the files and their names in the bundle.
    run, out = Path(run), Path(out)
    if os.path.lexists(out) and not force:
        raise RunError(f"{out} is there already; give another name, or replace it with {FORCE}")
    claims = _read_claims(run / RECEIPT, str(run / RECEIPT))
    if source_digest.digest_source(source_digest.PACKAGE) != (
        made_by := claims["source"]["digest"]
    ):
        raise RunError(
            f"{run} was made by another release than the one installed here ({made_by[:23]}...): "
            "bundle it with that release, because a bundle holds the source code that made the run"
        )
    files = {name: run / name for name in (*claims["files"], RECEIPT)}
    files |= {name: run / name for name in (SIGNATURE, *ATTESTATIONS) if (run / name).is_file()}
    files |= list_source_files()
    if data is not None:
        files |= {f"{DATA}{path.name}": path for path in sorted(Path(data).iterdir())}
    # [Step 2] Refuse what could not be unpacked again, before anything is written.
    check_names(files, run, RULES)
    for name, file in files.items():
        if not file.is_file():
            raise RunError(f"{file} is not there, and the bundle needs it as {name!r}")
        if out.exists() and file.samefile(out):
            raise RunError(f"{out} is itself a file of the bundle; give another name")
    check_contents(files, claims, run)
    # [Step 3] Write it, checking the bytes that go in, and rename it only if all are right.
    try:
        with replace_when_written(out) as temporary:
            _check_digests(_write_zip(temporary, files), claims["files"], run)
            digest = hash_file(temporary)
    except OSError as error:
        raise RunError(f"cannot bundle {run} as {out}: {error.strerror or error}") from error
    return digest


def open_bundle(path: Path, into: Path) -> Path:
    """Unpack a bundle into the folder ``into``, new or empty; return the run folder in it.

    The run is unpacked as ``into/run``, the source code as ``into/source`` and data, where it has
    any, as ``into/data``. Everything must be what the receipt implies, and nothing may be added. A
    refused bundle leaves nothing behind.

    Example:
        >>> open_bundle(Path("demo.bundle.zip"), Path("received"))
        PosixPath('received/run')
    """
    path, into = Path(path), Path(into)
    if os.path.lexists(into) and not (into.is_dir() and not any(into.iterdir())):
        raise RunError(f"expected a new or empty folder to unpack into, got {into}")
    # A parent that does not exist is made at the end, so that a refusal leaves nothing behind.
    existing = next(parent for parent in into.absolute().parents if parent.is_dir())
    with unpack(path, "zip", existing, RULES) as folder:
        # [Step 1] Check that every file is one that the receipt implies, and none is missing.
        if has_other_bytes(path):
            raise RunError(
                f"{path} holds bytes that belong to none of its files: a comment, something added, "
                "or sizes other than its directory's; refused. Get the bundle again, made with "
                "`seedless bundle`"
            )
        found = [file for file in folder.rglob("*") if file.is_file()]
        files = {file.relative_to(folder).as_posix(): file for file in found}
        if RECEIPT not in files:
            raise RunError(f"{path} is a zip file and no bundle: it holds no {RECEIPT}")
        claims = _read_claims(folder / RECEIPT, f"{RECEIPT} of {path}")
        check_contents(files, claims, path)
        _check_digests(
            {name: hash_file(files[name]) for name in claims["files"]}, claims["files"], path
        )
        # [Step 2] Move source and data out of the run folder, and all of it to its place.
        whole = folder.with_name("whole")
        whole.mkdir()
        for extra in (SOURCE, DATA):
            if (folder / extra).exists():
                (folder / extra).rename(whole / extra)
        folder.rename(whole / "run")
        if into.is_dir():
            shutil.copymode(into, whole)  # a private folder stays private
        into.parent.mkdir(parents=True, exist_ok=True)
        os.rename(whole, into)
    return into / "run"


def is_bundle(path: Path) -> bool:
    """Whether a path is a file that begins as zip files do.

    A truncated bundle is still one, so that `open_bundle` can say what is wrong with it.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == LOCAL_HEADER
    except OSError:
        return False


def _read_claims(file: Path, where: str) -> dict[str, Any]:
    """Return the predicate of a receipt that names its source and lists files with digests."""
    try:
        content = read_file(file, MAX_JSON_BYTES)
    except FileNotFoundError:
        raise RunError(explain_missing(file.parent)) from None
    except OSError as error:
        raise RunError(f"cannot read {file}: {error.strerror}") from error
    try:
        claims = parse_json(content, where)["predicate"]
        files = {str(name): str(digest) for name, digest in claims["files"].items()}
        source = str(claims["source"]["digest"])
    except (LookupError, TypeError, AttributeError) as error:
        raise RunError(
            f"{where}: expected a receipt that lists files under predicate.files, got something "
            "else; was it made by `seedless train`?"
        ) from error
    for name, digest in files.items():
        if not is_digest(digest):
            raise RunError(f"{where}: expected sha256:... for {name!r}, got {digest!r}")
    return {**claims, "files": files, "source": {"digest": source}}


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


def _check_digests(actual: Mapping[str, str], digests: Mapping[str, str], where: Path) -> None:
    for name, expected in digests.items():
        if actual[name] != expected:
            raise RunError(
                f"{name} of {where} is not the file its receipt covers: expected {expected}, got "
                f"{actual[name]}; it was changed after the run was sealed"
            )
