"""Write files that are complete or absent, never half written; hash files, and find them."""

import glob
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

AnyPath = str | os.PathLike[str]  # a `Run` is one too: its folder


def match_paths(place: AnyPath) -> list[Path]:
    """Return the path itself if it exists, or else, sorted, what it matches as a pattern.

    Example: ``match_paths("runs/a-*")``, as a shell would write it out without quotes.
    """
    path = Path(place).expanduser()
    return [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))


def say_no_run(place: AnyPath) -> str:
    """Return the message for a path of a run at which there is nothing.

    >>> say_no_run("nowhere")
    "no run at 'nowhere'"
    """
    return f"no run at {os.fspath(place)!r}"


def write_atomic(path: Path, content: bytes) -> None:
    """Write to a temporary name in the folder of ``path``, flush it to the disk, and rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replace_when_written(path: Path) -> Iterator[Path]:
    """Give a temporary file name, and rename that file to ``path`` if the block raises no error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".seedless.", dir=path.parent) as folder:
        temporary = Path(folder) / "part"
        yield temporary
        os.replace(temporary, path)


def hash_file(path: Path, algorithm: str = "sha256") -> str:
    """Return "sha256:..." of a file's bytes, or the hash of another algorithm of hashlib's."""
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def has_hash(path: Path, expected: str | None) -> bool:
    """Whether a file has this "sha256:..." or "md5:..."; any file has the hash None."""
    return expected is None or hash_file(path, expected.partition(":")[0]) == expected.lower()
