"""Unpack a downloaded dataset: .tar.gz and .zip files, read as hostile (see `core.archive`)."""

import os
from dataclasses import replace
from pathlib import Path

from seedless.core.archive import Kind, Rules, unpack
from seedless.core.errors import DataError

KINDS: dict[str, Kind] = {".tar.gz": "tar.gz", ".tgz": "tar.gz", ".zip": "zip"}
RULES = Rules(
    DataError,
    "remove it and fetch it again",
    max_ratio=100,  # recorded signals and images stay below 10
    free_bytes=64 * 2**20,  # so little does no harm, whatever the ratio
    strict=False,
)


def extract(archive: str | Path, folder: str | Path, *, limit: int = RULES.max_bytes) -> Path:
    """Unpack ``archive`` into ``folder``, which must not exist yet; return the folder.

    Where the archive holds nothing but one folder named like ``folder``, that one becomes it.
    """
    archive, folder = Path(archive), Path(folder)
    kind = next((KINDS[end] for end in KINDS if archive.name.lower().endswith(end)), None)
    if kind is None:
        raise DataError(f"{archive}: expected a {', '.join(KINDS)} file")
    if os.path.lexists(folder):
        raise DataError(f"{folder} is there already; remove it to unpack {archive.name} again")
    with unpack(archive, kind, folder.parent, replace(RULES, max_bytes=limit)) as inside:
        only = inside / folder.name
        alone = os.listdir(inside) == [folder.name] and only.is_dir()
        os.rename(only if alone else inside, folder)
    return folder
