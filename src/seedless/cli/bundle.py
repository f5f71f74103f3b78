"""`seedless bundle`: a run as one file that anyone can verify offline."""

import os
from pathlib import Path
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
    from seedless.runs.bundled_run import bundle_run

    place = Path(os.path.abspath(run))  # `.` has no name for the file
    file = out if out is not None else place.with_name(f"{place.name}.bundle.zip")
    digest = bundle_run(run, file, with_data=with_data, force=force)
    size = file.stat().st_size
    values = {"file": str(file), "bytes": size, "digest": digest}
    print_result(values, f"{file}\n{size:,} bytes\n{digest}", as_json)
