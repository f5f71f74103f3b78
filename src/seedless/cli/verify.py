"""`seedless verify RUN`: exit 0 identical, 1 differs, 2 not valid, 3 cannot be judged here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, print_json


def verify(
    run: Annotated[Path, typer.Argument(help="A run folder, or a bundle.")],
    validate_only: Annotated[
        bool,
        typer.Option("--validate-only", help="Check the files against the receipt; run nothing."),
    ] = False,
    segment: Annotated[
        int | None,
        typer.Option(help="Execute only the K-th stretch between two checkpoints, from 1."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu or cuda: where to execute a run of portable arithmetic."),
    ] = None,
    entry: Entry = None,
    data: DataPlace = None,
    public_key: Annotated[
        Path | None, typer.Option(help="The receipt must be signed with this key (PEM).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Validate RUN, execute it again in a fresh process, and compare every epoch.

    Exit code 0: identical. 1: it differs. 2: not a valid run. 3: cannot be judged on this machine.
    """
    from seedless.audit.verification import verify as verify_run

    verdict = verify_run(
        run,
        validate_only=validate_only,
        segment=segment,
        device=device,
        entry=entry,
        data=data,
        public_key=public_key,
        progress=not as_json,
    )
    if as_json:
        print_json(verdict.as_dict())
    else:
        typer.echo(f"{verdict.outcome.upper()}: {verdict.sentence}")
        for detail in verdict.details:
            typer.echo(f"  {detail}")
    raise typer.Exit(verdict.code)
