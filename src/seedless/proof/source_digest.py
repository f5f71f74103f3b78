"""The source digest: one digest over the files of this package, to record which code ran."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from seedless.core.version import __version__

PACKAGE = Path(__file__).resolve().parent.parent
KINDS = (".py", ".toml", ".html")


def list_source(package: Path = PACKAGE) -> dict[str, Path]:
    """Return every source file of the package by its POSIX path inside it, sorted."""
    files = {
        path.relative_to(package).as_posix(): path
        for path in package.rglob("*")
        if is_source(path.relative_to(package).as_posix())
    }
    return dict(sorted(files.items()))


def is_source(name: str) -> bool:
    """Whether the source digest covers a file of the package, by its POSIX path."""
    path = PurePosixPath(name)
    return path.suffix in KINDS and "__pycache__" not in path.parts


@lru_cache(maxsize=1)
def describe_source() -> dict[str, str]:
    """Return name, version and digest of the package that runs."""
    return {"name": "seedless", "version": __version__, "digest": digest_source(PACKAGE)}


def digest_source(package: Path) -> str:
    """Return the digest of the source files of a package in a folder."""
    return digest_files(list_source(package))


def digest_files(files: Mapping[str, Path]) -> str:
    """Return the SHA-256 over each path in sorted order, a NUL, and the file's own SHA-256."""
    hasher = hashlib.sha256()
    for name, path in sorted(files.items()):
        hasher.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{hasher.hexdigest()}"
