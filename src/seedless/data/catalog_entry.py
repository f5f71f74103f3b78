"""The records of the catalog: a dataset, and a file of it to download."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from seedless.core.errors import DataError


@dataclass(frozen=True, kw_only=True)
class File:
    """One file to download.

    Attributes:
        path: its path below the dataset's folder.
        url: the address to download it from.
        hash: ``"md5:..."`` or ``"sha256:..."``; None where the publisher gives none.
        check: how it is checked where there is no hash.
        unpack: the folder an archive is unpacked into, below the dataset's folder.
        contents: path and hash of files in that folder; with them the archive is not needed.
    """

    path: str
    url: str
    hash: str | None = None
    check: str = ""
    unpack: str | None = None
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """A dataset: where it is published, how it is checked, and what it holds.

    Attributes:
        name: its name on the command line and in configurations.
        title: its publisher's name for it.
        kind: "ecg", "image" or "noise".
        task: "multi-label" or "multi-class"; None for noise.
        classes: names, as its reader returns them.
        sizes: samples in each split, as its reader returns them; empty where the user chooses.
        repeated: records of one split whose samples another split has too; None where nobody has
            counted them, so that none are accepted unless data.repeated says so.
        fs: samples per second as published; None for images.
        leads: names as published; None for images and for channels without names.
        lead_map: channel -> lead, if the publisher does not name the leads.
        shape: (channels, height, width) of an image.
        files: what to download; empty for simulated data.
        larger: the file of the same images with so many pixels on a side, where there are such.
        listed: regular expression that selects files of SHA256SUMS.txt.
        extras: further such expressions by name, for files that are fetched on request.
        holds: (pattern, number of files) that must exist after the download.
        root: the folder or file that the reader takes, below the dataset's folder.
        size: bytes to download, approximately, without extras.
    """

    name: str
    title: str
    kind: str
    task: str | None
    classes: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    repeated: int | None = None
    fs: float | None = None
    leads: tuple[str, ...] | None = None
    lead_map: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[int, int, int] | None = None
    files: tuple[File, ...] = ()
    larger: Mapping[int, File] = field(default_factory=dict)
    listed: str | None = None
    extras: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[str, int] | None = None
    root: str = ""
    size: int = 0
    licence: str = ""
    citation: str = ""
    homepage: str = ""
    note: str = ""


def resize_entry(entry: DatasetEntry, size: int) -> DatasetEntry:
    """Return the entry of the same images with ``size`` pixels on a side; another is refused.

    ``repeated`` stays: the pictures are the same, so what is equal at one size is at the others.
    The bytes to download are not catalogued.
    """
    sides = () if entry.shape is None else (entry.shape[1], *entry.larger)
    if size not in sides:
        shown = ", ".join(map(str, sides)) if sides else "no"
        raise DataError(
            f"data.size is {size}, and {entry.name} has {shown} pixels on a side: choose one of "
            "these, or leave it out"
        )
    if entry.shape is None or size == entry.shape[1]:
        return entry
    file = entry.larger[size]
    title = entry.title.replace(f"{entry.shape[1]} x {entry.shape[2]}", f"{size} x {size}")
    shape = (entry.shape[0], size, size)
    return replace(entry, title=title, shape=shape, files=(file,), root=file.path, size=0)


def as_dict(entry: DatasetEntry) -> dict[str, Any]:
    """Return what users may know of an entry as plain values, for JSON."""
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(entry).items()
        if name not in ("listed", "holds", "root", "larger")
    }
    values["files"] = [
        {"path": file.path, "url": file.url, "hash": file.hash, "check": file.check}
        for file in (*entry.files, *entry.larger.values())
    ]
    return {**values, "extras": sorted(entry.extras), "embedded": not entry.files}
