"""`seedless verify RUN`: exit 0 identical, 1 differs, 2 not valid, 3 undecidable here."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, print_result


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or a bundle.")],
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Check the files; execute nothing.")
    ] = False,
    segment: Annotated[
        int | None, typer.Option(help="Only the epochs between the K-th pair of checkpoints.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda, for a run in portable arithmetic.")
    ] = None,
    entry: Entry = None,
    data: DataPlace = None,
    public_key: Annotated[
        Path | None, typer.Option(help="The receipt must be signed with this key (PEM).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Validate a run, train it again, and compare every epoch.

    It is trained in a new process.
    Exit code 0: identical. 1: it differs. 2: it is not a valid run.
    3: it differs, but so does this machine in something that changes bits.
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
    lines = [f"{verdict.outcome.upper()}: {verdict.sentence}"]
    lines += [f"  {detail}" for detail in verdict.details]
    print_result(verdict.as_dict(), "\n".join(lines), as_json)
    raise typer.Exit(verdict.code)
