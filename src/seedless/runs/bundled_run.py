"""A finished run as one file: validated, with its source code and, if asked for, its data."""

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.core.display import escape_lines, escape_text
from seedless.core.errors import RunError
from seedless.core.files import AnyPath
from seedless.proof.bundle import write_bundle
from seedless.runs.run_data import pack_data
from seedless.runs.script_run import ScriptRun, open_finished
from seedless.runs.validation import ValidatedRun


@dataclass(frozen=True, repr=False)
class Bundle:
    """A bundle that was written: its file, and the file's ``"sha256:..."``."""

    file: Path
    digest: str

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.file.stat().st_size

    def __repr__(self) -> str:
        return escape_lines(f"{escape_text(self.file)}\n{self.bytes:,} bytes\n{self.digest}")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"file": str(self.file), "bytes": self.bytes, "digest": self.digest}


def bundle(
    run: AnyPath, out: AnyPath | None = None, *, with_data: bool = False, force: bool = False
) -> Bundle:
    """Write a run as one file that anyone can verify offline; the same run gives the same bytes.

    Args:
        run: the run folder; one that is not what its receipt says is refused.
        out: the file to write; by default RUN.bundle.zip beside the folder.
        with_data: add the data, too; they must be those that the run was trained on.
        force: replace a file that exists.

    >>> seedless.bundle("runs/mine", "mine.zip")  # doctest: +SKIP
    mine.zip
    812,345 bytes
    sha256:5b1d...
    """
    place = Path(os.path.abspath(run))  # `.` has no name for the file
    file = place.with_name(f"{place.name}.bundle.zip") if out is None else Path(out)
    opened = open_finished(run)
    if with_data and isinstance(opened, ScriptRun):
        raise RunError(
            f"{opened.path} is the run of a script, whose data are files of any kind: leave "
            "--with-data out, and give the files that data.jsonl lists yourself"
        )
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data" if with_data else None
        if data is not None and isinstance(opened, ValidatedRun):
            pack_data(opened, data)
        return Bundle(file, write_bundle(opened.path, file, data=data, force=force))
