"""A dataset packed to travel with a run: the arrays and a manifest, as the cache keeps them."""

from __future__ import annotations

from pathlib import Path

from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.data.cache_entry import MANIFEST, UnfitError, read_entry, read_manifest, write_entry


def write_packed(folder: Path, data: Dataset) -> None:
    """Write a dataset as a folder; the same data, the same bytes."""
    write_entry(folder, {"packed": data.name}, data, mtime_ns=0)


def is_packed(folder: Path) -> bool:
    """Whether a folder holds a packed dataset."""
    return (folder / MANIFEST).is_file()


def read_packed(folder: Path) -> Dataset:
    """Read a packed dataset, every sample checked against its digest."""
    try:
        return read_entry(folder, read_manifest(folder), verify=True)
    except UnfitError as error:
        raise DataError(f"the data in {folder} cannot be used: {error}") from None
