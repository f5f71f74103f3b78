"""Download the files of a dataset, check each one, and unpack the archives among them."""

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
from seedless.data.catalog import SUMS, DatasetEntry, File, find_entry
from seedless.data.download.progress import DownloadProgress
from seedless.data.download.transfer import (
    DownloadError,
    FileDownload,
    RetryPolicy,
    check_url,
    download,
    open_session,
)
from seedless.data.download.unpack import extract

CONNECTIONS = 4  # at once: PTB-XL is 43,600 small files
_LINE = re.compile(r"([0-9a-fA-F]{64})[ \t]+\*?(.+)")  # one space or two, as tools differ


def fetch(
    name: str | DatasetEntry,
    folder: str | Path,
    *,
    base_url: str | None = None,
    extras: Collection[str] = (),
    progress: bool = True,
    retry: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
) -> Path:
    """Download a dataset into ``folder`` and return the path that its reader takes.

    A file that exists with the right hash is not downloaded again, whoever put it there; if all
    exist, nothing is written. A download that was interrupted continues. Of two processes that
    fetch the same dataset, one waits for the other.

    Args:
        name: a dataset of the catalog.
        folder: the dataset's own folder.
        base_url: a mirror to download from, instead of the publisher's address.
        extras: optional parts, as the catalog names them ("500": PTB-XL at 500 Hz).
        progress: show how much is done, on standard error.
        retry: retries and timeouts.

    Example: ``fetch("breastmnist", "data/breastmnist")``.
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
        _download_and_unpack(entry, root, base_url, extras, progress, retry)
    except OSError as error:
        raise DataError(
            f"cannot write in {root}: {error.strerror or error}; choose another folder"
        ) from error
    return root / entry.root


def _find_root(entry: DatasetEntry, folder: Path) -> Path:
    """Return the folder that holds the files: ``folder``, or one below it that a user made.

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


def _download_and_unpack(
    entry: DatasetEntry,
    root: Path,
    base_url: str | None,
    extras: Collection[str],
    shown: bool,
    retry: RetryPolicy,
) -> None:
    """Download the files that are missing below ``root`` and unpack the archives."""
    files = _list_files(entry, base_url)
    if not _is_complete(entry, root, files, extras):
        with _lock_folder(entry, root, shown):
            # [Step 1] The files that the catalog names; for PhysioNet, that is a list of files.
            _download_all(entry, root, files, shown, retry)
            # [Step 2] The files of that list which the catalog's pattern selects.
            if entry.listed is not None:
                listed = _read_list(entry, root, files[0].url, extras)
                _download_all(entry, root, listed, shown, retry)
            # [Step 3] Unpack, and check the hashes of what was unpacked.
            for file in files:
                if file.unpack is not None and not _is_unpacked(root, file):
                    extract(root / file.path, root / file.unpack)
                    _is_unpacked(root, file)
    _check_file_count(entry, root)


def _is_complete(
    entry: DatasetEntry, root: Path, files: Sequence[File], extras: Collection[str]
) -> bool:
    """Whether every file exists with the right hash, and every archive is unpacked."""
    if not all(_is_downloaded(root, file) and _is_unpacked(root, file) for file in files):
        return False
    listed = [] if entry.listed is None else _read_list(entry, root, files[0].url, extras)
    return all(_is_downloaded(root, file) for file in listed)


def _list_files(entry: DatasetEntry, base_url: str | None) -> list[File]:
    """Return the catalog's files, each with the address to download it from."""
    if base_url is None:
        return list(entry.files)
    base = base_url.rstrip("/")
    return [replace(file, url=f"{base}/{quote(file.path)}") for file in entry.files]


def _read_list(
    entry: DatasetEntry, root: Path, address: str, extras: Collection[str]
) -> list[File]:
    """Return the files of SHA256SUMS.txt that the catalog selects, in the order of that list."""
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
    """Return (path, hexadecimal digest) of each line of a SHA256SUMS.txt; no path may lead out."""
    sums: dict[str, str] = {}
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
            raise DataError(
                f"{path}, line {number}: {name!r} could lead out of the folder; refused"
            )
        if sums.setdefault(name, match[1].lower()) != match[1].lower():
            raise DataError(f"{path}, line {number}: a second, different sum for {name!r}; refused")
    return list(sums.items())


def _is_downloaded(root: Path, file: File) -> bool:
    """Whether a file exists with the right hash, or is unpacked already."""
    if file.unpack is not None and _is_unpacked(root, file):
        return True
    path = root / file.path
    if not path.is_file() or path.stat().st_size == 0:
        return False
    return has_hash(path, file.hash)


def _is_unpacked(root: Path, file: File) -> bool:
    """Whether an archive's folder exists; other contents than the published ones are an error."""
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


def _check_file_count(entry: DatasetEntry, root: Path) -> None:
    """Check the number of files, since archives without a published hash may lack some."""
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
    entry: DatasetEntry, root: Path, files: Sequence[File], shown: bool, retry: RetryPolicy
) -> None:
    """Download the missing ones of ``files`` in order, a few at a time.

    The first failure ends all downloads; the next call continues the files that are incomplete.
    """
    missing = [file for file in files if not _is_downloaded(root, file)]
    if not missing:
        return
    session, stop = open_session(CONNECTIONS), threading.Event()
    with session, DownloadProgress(entry.name, len(missing), shown=shown) as progress:

        def download_one(file: File) -> None:
            target = root / file.path
            try:
                download(FileDownload(file.url, target, file.hash, session, progress, retry, stop))
            except DownloadError as error:
                raise DataError(f"{error} {_explain_manual_download(entry, root, file)}") from error
            progress.finish_file()

        with ThreadPoolExecutor(min(CONNECTIONS, len(missing))) as pool:
            tasks = [pool.submit(download_one, file) for file in missing]
            try:
                for task in as_completed(tasks):
                    task.result()
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


def _explain_manual_download(entry: DatasetEntry, root: Path, file: File) -> str:
    """Return how to get the file without this program."""
    text = f"By hand: download {file.url} and put it at {root / file.path}"
    if (root / file.path).exists():
        text += " (the file there now has another hash)"
    if entry.listed is not None:
        text += f" (or all files: unpack the .zip of {entry.homepage} in {root})"
    return f"{text}; then fetch again, which checks it."


@contextmanager
def _lock_folder(entry: DatasetEntry, root: Path, shown: bool) -> Iterator[None]:
    """Let one process at a time download a dataset into a folder."""
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
