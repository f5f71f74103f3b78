"""`seedless report RUN...`: one HTML page about one run, or about how several differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_json


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page to write; by default report.html in the one run."),
    ] = None,
    examples: Annotated[
        int, typer.Option("--examples", min=0, help="Test records to draw with the prediction.")
    ] = 2,
    verify: Annotated[
        bool, typer.Option("--verify", help="Execute the run again, and show the verdict.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page, without scripts or requests, about these runs.

    The page of a published experiment is `seedless study report`.
    """
    from seedless.analysis.run_report import report as write_report

    page = write_report(*runs, out=out, examples=examples, verify=verify, force=force)
    if as_json:
        print_json({"page": str(page), "bytes": page.stat().st_size})
    else:
        typer.echo(page)
