"""`seedless card`: a model card for a run, in the Hugging Face form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_json


def card(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="README.md", help="The file to write; else it is printed."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The model's name; else that of the folder.")
    ] = None,
    license_: Annotated[
        str, typer.Option("--license", help="Its licence, such as mit: yours to choose.")
    ] = "other",
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write RUN's model card: what it is, how it was made, how well it does, what it is not for."""
    from seedless.audit.validation import validate
    from seedless.core.errors import RunError
    from seedless.core.files import hash_file, write_atomic
    from seedless.report.card import make_card
    from seedless.report.runview import read_run
    from seedless.runs.opening import check_output_file

    if out is not None:
        check_output_file(run, out, force)
    if problems := validate(run).problems:
        raise RunError(f"{run} is not a valid run, and gets no card: {problems[0]}")
    view = read_run(run, name or run.absolute().name)
    text = make_card(view, license_)
    if out is not None:
        write_atomic(out, text.encode())
    if as_json:
        file = None if out is None else {"path": str(out), "digest": hash_file(out)}
        print_json({"run": str(run), "card": text, "file": file})
    else:
        typer.echo(text if out is None else f"{out}  {hash_file(out)}", nl=out is not None)
