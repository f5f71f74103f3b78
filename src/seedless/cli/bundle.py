"""`seedless bundle`: a run as one file that anyone can verify offline."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from seedless.cli.options import AsJson, Force, RunFolder, print_result


def bundle(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file; default: RUN.bundle.zip.")
    ] = None,
    force: Force = False,
    with_data: Annotated[bool, typer.Option("--with-data", help="Add the data, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run as one file that anyone can verify offline.

    It holds the run, its receipt and the source code that made it.
    The same run gives the same bytes.
    (To move the runs of a study to another store: seedless study archive.)
    """
    from seedless.core.errors import RunError
    from seedless.proof.bundle import list_source_files, write_bundle
    from seedless.proof.source_digest import describe_source
    from seedless.runs.run_data import pack_data
    from seedless.runs.validation import open_validated

    place = Path(os.path.abspath(run))  # `.` has no name for the file
    file = out if out is not None else place.with_name(f"{place.name}.bundle.zip")
    with TemporaryDirectory() as folder:
        claimed = open_validated(run).claims["source"]["digest"]
        if describe_source()["digest"] != claimed:
            raise RunError(
                f"{run} was made by another release than the one installed here "
                f"({claimed[:23]}...): bundle it with that release, because a bundle holds the "
                "source code that made the run"
            )
        extra = list_source_files()
        if with_data:
            extra |= pack_data(run, Path(folder) / "data")
        digest = write_bundle(run, file, extra, force=force)
    size = file.stat().st_size
    values = {"file": str(file), "bytes": size, "digest": digest}
    print_result(values, f"{file}\n{size:,} bytes\n{digest}", as_json)
