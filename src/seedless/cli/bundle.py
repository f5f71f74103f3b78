"""`seedless bundle`: a run as one file that anyone can verify offline."""

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
    from seedless.runs.bundled_run import bundle as write_bundle

    done = write_bundle(run, out, with_data=with_data, force=force)
    print_result(done.as_dict(), done, as_json)
