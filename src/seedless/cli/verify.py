"""`seedless verify RUN`: print the verdict; the exit code says it to scripts."""

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
    sample: Annotated[
        int | None, typer.Option(help="Only N segments, chosen at random; start, data and scores.")
    ] = None,
    sample_token: Annotated[
        str | None, typer.Option(metavar="HEX", help="Repeat the choice that --sample printed.")
    ] = None,
    accept_part: Annotated[
        bool, typer.Option("--accept-part", help="End with 0, not 4, if a part agrees.")
    ] = False,
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
    Exit code 0: identical. 1: it differs.
    2: it is not a valid run, or an argument is wrong.
    3: it differs, but so does this machine in what changes bits: not a pass.
    4: the segment or the sample agrees; the rest was not executed.
    """
    from seedless.audit.verification import verify as verify_run

    verdict = verify_run(
        run,
        validate_only=validate_only,
        segment=segment,
        sample=sample,
        sample_token=sample_token,
        device=device,
        entry=entry,
        data=data,
        public_key=public_key,
        progress=not as_json,
    )
    code = 0 if accept_part and verdict.partial else verdict.code
    print_result({**verdict.as_dict(), "code": code}, verdict.as_text(), as_json)
    raise typer.Exit(code)
