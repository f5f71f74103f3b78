"""The source digest: one digest over the files of this package, to record which code ran."""

import hashlib
from functools import lru_cache
from pathlib import Path

from seedless.core.version import __version__

PACKAGE = Path(__file__).resolve().parent.parent
KINDS = (".py", ".toml", ".html")


def list_source(package: Path = PACKAGE) -> dict[str, Path]:
    """Return every source file of the package by its POSIX path inside it, sorted."""
    files = {
        path.relative_to(package).as_posix(): path
        for path in package.rglob("*")
        if path.suffix in KINDS and "__pycache__" not in path.parts
    }
    return dict(sorted(files.items()))


@lru_cache(maxsize=1)
def describe_source() -> dict[str, str]:
    """Return name, version and digest of the package that runs."""
    return {"name": "seedless", "version": __version__, "digest": digest_source(PACKAGE)}


def digest_source(package: Path) -> str:
    """Return the SHA-256 over each path in sorted order, a NUL, and the file's own SHA-256."""
    hasher = hashlib.sha256()
    for name, path in list_source(package).items():
        hasher.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{hasher.hexdigest()}"
