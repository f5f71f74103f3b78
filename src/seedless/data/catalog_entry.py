"""What is known of a dataset before it is read: the records of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class File:
    """One file to download.

    Attributes:
        path: where it goes, below the dataset's folder.
        url: where it comes from.
        hash: ``"md5:..."`` or ``"sha256:..."``; None where the publisher gives none.
        check: how it is checked where there is no hash.
        unpack: the folder an archive is unpacked into, below the dataset's folder.
        contents: path and hash of files in that folder: they stand in for the archive.
    """

    path: str
    url: str
    hash: str | None = None
    check: str = ""
    unpack: str | None = None
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A dataset: where it is, how it is checked, what is in it.

    Attributes:
        name: what it is called on the command line.
        title: what its publisher calls it.
        kind: "ecg", "image" or "noise".
        task: "multi-label" or "multi-class"; None for noise.
        classes: names, as its reader returns them.
        sizes: samples in each split, as its reader returns them; empty where the user chooses.
        fs: samples a second as published; None for images.
        leads: names as published; None for images and where channels are unnamed.
        lead_map: channel to lead, where the publisher does not name the leads.
        shape: (channels, height, width) of an image.
        files: what to download; empty for what is computed.
        listed: regular expression: which of the files listed in SHA256SUMS.txt are wanted.
        extras: further expressions by name, for what is fetched on request.
        holds: (pattern, number): files that must be there, however few a cut list or archive names.
        root: the folder or file a reader takes, below the dataset's folder.
        size: bytes to download, about; extras not counted.
    """

    name: str
    title: str
    kind: str
    task: str | None
    classes: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    fs: float | None = None
    leads: tuple[str, ...] | None = None
    lead_map: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[int, int, int] | None = None
    files: tuple[File, ...] = ()
    listed: str | None = None
    extras: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[str, int] | None = None
    root: str = ""
    size: int = 0
    licence: str = ""
    citation: str = ""
    homepage: str = ""
    note: str = ""


def as_dict(entry: Entry) -> dict[str, Any]:
    """Return what users may know of an entry as plain values, for JSON."""
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(entry).items()
        if name not in ("listed", "holds", "root")
    }
    values["files"] = [
        {"path": file.path, "url": file.url, "hash": file.hash, "check": file.check}
        for file in entry.files
    ]
    return {**values, "extras": sorted(entry.extras), "embedded": not entry.files}
