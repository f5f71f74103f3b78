"""Bring a dataset's files to a folder: downloaded, or found there, and checked either way."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from seedless.core.errors import DataError
from seedless.core.files import has_hash
from seedless.core.progress import Progress
from seedless.core.registry import choose
from seedless.data.catalog import SUMS, Entry, File, find_entry
from seedless.data.download.progress import DownloadProgress
from seedless.data.download.transfer import (
    DownloadError,
    Job,
    Patience,
    check_url,
    download,
    open_session,
)
from seedless.data.download.unpack import extract

CONNECTIONS = 4  # at once: PTB-XL is 43,600 small files
_LINE = re.compile(r"([0-9a-fA-F]{64})[ \t]+\*?(.+)")  # one space or two, as tools differ


def fetch(
    name: str | Entry,
    folder: str | Path,
    *,
    base_url: str | None = None,
    extras: Collection[str] = (),
    progress: bool = True,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> Path:
    """Bring a dataset to ``folder`` and return the path its reader takes.

    What is there already with the right hash is not downloaded again, whoever put it there; where
    all is there, nothing is written. A download that was cut off is continued. Of two processes
    that fetch the same dataset, one waits.

    Args:
        name: a dataset of the catalog.
        folder: the dataset's own folder.
        base_url: a mirror, in place of the publisher's address of the files' folder.
        extras: further parts, as the catalog names them ("500": PTB-XL at 500 Hz).
        progress: a bar on a terminal, a line every few seconds elsewhere; False: nothing.
        patience: retries and timeouts.
    """
    entry = find_entry(name) if isinstance(name, str) else name
    if not entry.files:
        raise DataError(f"{entry.name} is computed, not downloaded: use it by its name")
    for extra in extras:
        choose(f"extra of {entry.name}", extra, entry.extras)
    if base_url is not None:
        check_url(base_url)
    root = _find_root(entry, Path(folder).expanduser())
    try:
        _bring(entry, root, base_url, extras, progress, patience)
    except OSError as error:
        raise DataError(
            f"cannot write in {root}: {error.strerror or error}; choose another folder"
        ) from error
    return root / entry.root


def _find_root(entry: Entry, folder: Path) -> Path:
    """Return the folder the files are in: ``folder``, or one below it that was put there by hand.

    PhysioNet's .zip unpacks to a folder of its own, and wget -r to physionet.org/files/....
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"expected a folder for {entry.name}, and {folder} is a file")
    if entry.listed is None or not folder.is_dir() or (folder / SUMS).exists():
        return folder
    address = urlsplit(entry.files[0].url)
    mirrored = folder / f"{address.netloc}{address.path}"
    below = [*folder.glob(f"*/{SUMS}"), *([mirrored] if mirrored.exists() else [])]
    return below[0].parent if len(below) == 1 else folder


def _bring(
    entry: Entry,
    root: Path,
    base_url: str | None,
    extras: Collection[str],
    shown: bool,
    patience: Patience,
) -> None:
    """Download what is missing below ``root`` and unpack what is packed."""
    files = _addressed(entry, base_url)
    if not _is_complete(entry, root, files, extras):
        with _only_one(entry, root, shown):
            _download_all(entry, root, files, shown, patience)
            if entry.listed is not None:
                listed = _read_list(entry, root, files[0].url, extras)
                _download_all(entry, root, listed, shown, patience)
            for file in files:
                if file.unpack is not None and not _is_unpacked(root, file):
                    extract(root / file.path, root / file.unpack)
                    _is_unpacked(root, file)
    _count(entry, root)


def _is_complete(entry: Entry, root: Path, files: Sequence[File], extras: Collection[str]) -> bool:
    """Whether all is there and unpacked."""
    if not all(_is_there(root, file) and _is_unpacked(root, file) for file in files):
        return False
    listed = [] if entry.listed is None else _read_list(entry, root, files[0].url, extras)
    return all(_is_there(root, file) for file in listed)


def _addressed(entry: Entry, base_url: str | None) -> list[File]:
    """Return the files with the address each is fetched from."""
    if base_url is None:
        return list(entry.files)
    base = base_url.rstrip("/")
    return [replace(file, url=f"{base}/{quote(file.path)}") for file in entry.files]


def _read_list(entry: Entry, root: Path, address: str, extras: Collection[str]) -> list[File]:
    """Return the wanted files of the SHA256SUMS.txt that is there, in its order."""
    wanted = re.compile("|".join([entry.listed or "", *(entry.extras[name] for name in extras)]))
    base = address.removesuffix(SUMS)
    files = [
        File(path=path, url=base + quote(path), hash=f"sha256:{digest}")
        for path, digest in read_sums(root / SUMS)
        if wanted.fullmatch(path)
    ]
    if not files:
        raise DataError(
            f"{root / SUMS} lists no file of {entry.name}; if it belongs to another dataset, "
            "choose another folder, else remove it, and fetch again"
        )
    return files


def read_sums(path: Path) -> list[tuple[str, str]]:
    """Read a SHA256SUMS.txt: (path, hexadecimal digest) line by line, every path inside."""
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except ValueError:
        raise DataError(
            f"{path} is not a list of SHA-256 sums; remove it and fetch again"
        ) from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise DataError(
                f"{path}, line {number}: expected a SHA-256 and a path, got {line[:80]!r}; "
                "remove the file and fetch again"
            )
        name = match[2].removeprefix("./")
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\\" in name or not name.isprintable():
            raise DataError(f"{path}, line {number}: {name!r} would leave the folder; refused")
        if found.setdefault(name, match[1].lower()) != match[1].lower():
            raise DataError(f"{path}, line {number}: a second, different sum for {name!r}; refused")
    return list(found.items())


def _is_there(root: Path, file: File) -> bool:
    """Whether a file is there with the right hash, or unpacked."""
    if file.unpack is not None and _is_unpacked(root, file):
        return True
    path = root / file.path
    if not path.is_file() or path.stat().st_size == 0:
        return False
    return has_hash(path, file.hash)


def _is_unpacked(root: Path, file: File) -> bool:
    """Whether an archive's folder is there; one that holds something else is an error."""
    if file.unpack is None:
        return True
    folder = root / file.unpack
    if not folder.is_dir():
        return False
    for name, known in file.contents.items():
        path = folder / name
        if not path.is_file() or not has_hash(path, known):
            raise DataError(
                f"{path} is {'not the published file' if path.exists() else 'missing'}: expected "
                f"{known}; remove {folder} and fetch again"
            )
    return True


def _count(entry: Entry, root: Path) -> None:
    """Check by number what no hash is published for."""
    if entry.holds is None:
        return
    pattern, expected = entry.holds
    found = sum(1 for _ in root.rglob(pattern))
    if found != expected:
        raise DataError(
            f"{root}: expected {expected:,} files {pattern} of {entry.name}, found {found:,}; "
            "remove what is incomplete and fetch again"
        )


def _download_all(
    entry: Entry, root: Path, files: Sequence[File], shown: bool, patience: Patience
) -> None:
    """Download what is missing of ``files``, in their order, a few at a time.

    The first failure ends it; what was under way is continued next time.
    """
    missing = [file for file in files if not _is_there(root, file)]
    if not missing:
        return
    session, stop = open_session(CONNECTIONS), threading.Event()
    with session, DownloadProgress(entry.name, len(missing), shown=shown) as progress:

        def bring(file: File) -> None:
            target = root / file.path
            try:
                download(Job(file.url, target, file.hash, session, progress, patience, stop))
            except DownloadError as error:
                raise DataError(f"{error} {_by_hand(entry, root, file)}") from error
            progress.finish_file()

        with ThreadPoolExecutor(min(CONNECTIONS, len(missing))) as pool:
            tasks = [pool.submit(bring, file) for file in missing]
            try:
                for task in as_completed(tasks):
                    task.result()
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


def _by_hand(entry: Entry, root: Path, file: File) -> str:
    """Say what to do without this program's download."""
    text = f"By hand: download {file.url} and put it at {root / file.path}"
    if (root / file.path).exists():
        text += " (the file there now has another hash)"
    if entry.listed is not None:
        text += f" (or all files: unpack the .zip of {entry.homepage} in {root})"
    return f"{text}; then fetch again, which checks it."


@contextmanager
def _only_one(entry: Entry, root: Path, shown: bool) -> Iterator[None]:
    """Let one process at a time fetch a dataset into a folder."""
    from filelock import FileLock, Timeout

    root.mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / f".{entry.name}.lock")
    try:
        lock.acquire(timeout=1)
    except Timeout:
        if shown:
            Progress(entry.name, shown=False).say("another process is fetching it; waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
