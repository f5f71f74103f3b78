"""`seedless card`: a model card for a run, in the format of Hugging Face."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, Force, RunFolder, print_json


def card(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(metavar="README.md", help="The file; default: print the card.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The model's name; default: RUN's name.")] = None,
    license_: Annotated[
        str, typer.Option("--license", help="The licence that you choose, such as mit.")
    ] = "other",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a model card: results, limits, and how to verify them."""
    from seedless.analysis.run_report import view_run
    from seedless.core.files import hash_file, write_atomic
    from seedless.report.card import make_card
    from seedless.runs.opened_run import check_output_file
    from seedless.runs.validation import open_validated

    if out is not None:
        check_output_file(run, out, force)
    view = view_run(open_validated(run), name or run.absolute().name)
    text = make_card(view, license_)
    if out is not None:
        write_atomic(out, text.encode())
    if as_json:
        file = None if out is None else {"path": str(out), "digest": hash_file(out)}
        print_json({"run": str(run), "card": text, "file": file})
    else:
        typer.echo(text if out is None else f"{out}  {hash_file(out)}", nl=out is not None)
