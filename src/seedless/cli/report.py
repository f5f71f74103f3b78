"""`seedless report RUN...`: one HTML page about one run, or about how several differ."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.argument_checks import check_matches
from seedless.cli.options import AsJson, Force, print_result


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Run folders, or patterns in quotes.", callback=check_matches
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page; default: report.html in the folder of one run.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="How many test records to draw.")] = 2,
    verify: Annotated[
        bool, typer.Option("--verify", help="Execute the run again and show the verdict.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about runs, with scores and proof.

    The page loads nothing and runs no script.
    (A page about a study: seedless study report.)
    """
    from seedless.core.errors import NEEDS_PAGE, RunError
    from seedless.core.files import match_paths

    folders = [path for run in runs for path in match_paths(run) if path.is_dir()]
    if out is None and len(folders) > 1:
        raise RunError(NEEDS_PAGE)
    from seedless.analysis.run_report import report as write_report

    page = write_report(*runs, out=out, examples=examples, verify=verify, force=force)
    print_result({"page": str(page), "bytes": page.stat().st_size}, page, as_json)
