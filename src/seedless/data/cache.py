"""The cache of decoded datasets: an entry is opened if it is usable, and built again if not.

An entry is stale if its source files or the reader's options have changed, and damaged if a file is
missing, cut short or changed. Of two processes that need the same entry, one waits for the other.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seedless.core.cache_location import find_cache_folder
from seedless.core.dataset import Dataset
from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import DataError
from seedless.data.dataset_folder import (
    check_entry_folder,
    clear_leftovers,
    make_write_error,
    read_folder,
    write_folder,
)
from seedless.data.manifest import CACHE_HEAD, UnusableEntryError, read_manifest

_log = logging.getLogger(__name__)


def find_entry_folder(name: str, key: Mapping[str, Any], sources: Sequence[Path]) -> Path:
    """Return the folder of an entry, which depends on name, options and paths of the sources."""
    places = [str(Path(source).resolve()) for source in sources]
    return find_cache_folder() / f"{name}-{digest_value([dict(key), places])[7:19]}"


def open_cached(
    folder: Path,
    key: Mapping[str, Any],
    sources: Sequence[Path],
    build: Callable[[], Dataset],
    *,
    verify: bool = False,
) -> Dataset:
    """Return the dataset of the entry ``folder``; build the entry first if it is not usable.

    Args:
        folder: the entry's own folder, as from `find_entry_folder`.
        key: the reader's options, plain values.
        sources: the files and folders that ``build`` reads. A file counts as unchanged if its size
            and time of change are the same, or else its content; a folder if the path, size and
            time of change of every file in it are.
        build: reads the sources and returns the dataset.
        verify: compare every sample with its digest, not 16 of them.
    """
    from filelock import FileLock

    folder, options = Path(folder), json.loads(canonical_json(dict(key)))
    # [Step 1] Open a usable entry without a lock: that is what nearly every call does.
    try:
        return _open(folder, options, sources, verify)
    except UnusableEntryError:
        pass  # checked again under the lock, since another process may be replacing it now
    # [Step 2] Lock the entry, never a folder that holds anything else.
    check_entry_folder(folder)
    lock = FileLock(folder.parent / f".{folder.name}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise make_write_error(folder, error) from error
    # [Step 3] Build it, unless another process has built it in the meantime.
    try:
        clear_leftovers(folder)
        return _open_or_build(folder, options, sources, build, verify)
    finally:
        lock.release()


def _open_or_build(
    folder: Path,
    options: dict[str, Any],
    sources: Sequence[Path],
    build: Callable[[], Dataset],
    verify: bool,
) -> Dataset:
    """Open or build an entry under the lock. The provenance says why an entry was built again."""
    try:
        return _open(folder, options, sources, verify)
    except UnusableEntryError as error:
        reason = str(error) if folder.exists() else None
    if reason is not None:
        _log.warning("%s is built again: %s", folder, reason)
    described = [_describe(Path(source)) for source in sources]  # before they are read
    write_folder(folder, {"key": options, "sources": described}, build())
    data = read_folder(folder, read_manifest(folder, CACHE_HEAD), verify=False)
    if reason is None:
        return data
    return replace(data, provenance={**data.provenance, "cache": f"built again: {reason}"})


def _open(folder: Path, options: dict[str, Any], sources: Sequence[Path], verify: bool) -> Dataset:
    """Return the entry's dataset if it was built from these options and sources."""
    manifest = read_manifest(folder, CACHE_HEAD)
    known: dict[str, Any] = manifest["key"]
    changed = sorted(
        name for name in known.keys() | options.keys() if known.get(name) != options.get(name)
    )
    if changed:
        raise UnusableEntryError(f"the option {', '.join(changed)} has changed")
    if len(manifest["sources"]) != len(sources):
        raise UnusableEntryError("the list of sources has changed")
    for source, description in zip(sources, manifest["sources"], strict=True):
        if not _is_unchanged(Path(source), description):
            raise UnusableEntryError(f"the source {description['name']} has changed")
    return read_folder(folder, manifest, verify)


def _describe(source: Path) -> dict[str, Any]:
    """Return what is recorded of a source, to find out later whether it has changed."""
    try:
        if source.is_dir():
            listing = json.dumps(_list_files(str(source))).encode()
            return {"name": source.name, "files": hashlib.sha256(listing).hexdigest()}
        if not source.exists():
            return {"name": source.name, "absent": True}
        state = source.stat()
        with open(source, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{source}: the source cannot be read: {error.strerror}") from error
    return {
        "name": source.name,
        "bytes": state.st_size,
        "mtime_ns": state.st_mtime_ns,
        "sha256": digest,
    }


def _is_unchanged(source: Path, known: dict[str, Any]) -> bool:
    """Whether a source matches its description; a file of the same size and time is not read."""
    if "sha256" in known and source.is_file():
        state = source.stat()
        if (state.st_size, state.st_mtime_ns) == (known["bytes"], known["mtime_ns"]):
            return True
        return bool(_describe(source)["sha256"] == known["sha256"])
    return _describe(source) == known


def _list_files(folder: str, inside: str = "", above: tuple[str, ...] = ()) -> list[list[Any]]:
    """Return [path, bytes, time of change] of every file under a folder, in a fixed order.

    Links are followed, to folders too; a link back to a folder above is not.
    """
    files: list[list[Any]] = []
    above = (*above, os.path.realpath(folder))
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                if not entry.is_symlink() or os.path.realpath(entry.path) not in above:
                    files += _list_files(entry.path, f"{inside}{entry.name}/", above)
            else:
                link = entry.is_symlink() and not os.path.exists(entry.path)  # a broken link
                state = entry.stat(follow_symlinks=not link)
                files.append([inside + entry.name, state.st_size, state.st_mtime_ns])
    return files
