"""`seedless bundle`: a run as one file that anyone can verify offline."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_json


def bundle(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write; RUN.bundle.zip beside RUN if none."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there.")
    ] = False,
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Pack the data too, so that nothing else is needed."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run, its receipt and the source code as one file; the same run, the same bytes.

    To continue a study on another machine, use `seedless study archive`.
    """
    from seedless.core.errors import RunError
    from seedless.proof.bundle import list_source_files, write_bundle
    from seedless.proof.receipt import read_receipt
    from seedless.proof.source import describe_source
    from seedless.runs.run_data import pack_data

    place = Path(os.path.abspath(run))  # `.` has no name to call a bundle by
    file = out if out is not None else place.with_name(f"{place.name}.bundle.zip")
    with TemporaryDirectory() as folder:
        claimed = read_receipt(run)["predicate"]["source"]["digest"]
        if describe_source()["digest"] != claimed:
            raise RunError(
                f"{run} was made by another release than is installed here ({claimed[:23]}...): "
                "bundle it with that one, so that the source that made it goes along"
            )
        extra = list_source_files()
        if with_data:
            extra |= pack_data(run, Path(folder) / "data")
        digest = write_bundle(run, file, extra, force=force)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "digest": digest})
    else:
        typer.echo(f"{file}\n{size:,} bytes\n{digest}")
