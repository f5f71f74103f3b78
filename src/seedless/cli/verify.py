"""`seedless verify RUN`: print the verdict; the exit code says it to scripts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.argument_checks import check_exists
from seedless.cli.options import (
    AsJson,
    DataPlace,
    Entry,
    WeightsPlace,
    print_line,
    print_result,
    write_output,
)
from seedless.core.errors import ConfigError

if TYPE_CHECKING:
    from seedless.audit.verdict import Verdict


def verify(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run folder or a bundle.", callback=check_exists),
    ],
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Check the files; execute nothing.")
    ] = False,
    segment: Annotated[
        int | None, typer.Option(help="Only the epochs between the K-th pair of checkpoints.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="Only N random segments, and start, data and scores.")
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
    processes: Annotated[
        int, typer.Option(min=1, max=1024, help="Execute on N processes, if it is portable.")
    ] = 1,
    execute: Annotated[
        bool, typer.Option("--execute", help="Run the command of a script's run, with your rights.")
    ] = False,
    sources: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Holds the script; default: the current folder."),
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="The interpreter for --execute; default: this one.")
    ] = None,
    entry: Entry = None,
    data: DataPlace = None,
    weights: WeightsPlace = None,
    public_key: Annotated[
        Path | None, typer.Option(help="The receipt, or model.sig, must be signed with this key.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a signed SLSA summary; needs --key.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="KEY.pem", help="Your private key, for --summary.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Validate a run, train it again, and compare every epoch.

    It is trained in a new process. A script is not run without --execute.
    Exit code 0: identical. 1: it differs.
    2: it is not a valid run, or an argument is wrong.
    3: it differs, but so does this machine in what changes bits: not a pass.
    4: the segment or the sample agrees; the rest was not executed.
       Or: it is a script's run, valid, and nothing was executed.
    """
    from seedless.audit.verification import verify as verify_run

    if accept_part and segment is None and sample is None:
        raise ConfigError("--accept-part is about --segment K or --sample N: give one of them")
    if (summary is None) != (key is None):
        raise ConfigError("expected both --summary FILE and --key KEY.pem, got one of them")
    if summary is not None and key is not None:
        check_summary(run, summary, key)
    verdict = verify_run(
        run,
        validate_only=validate_only,
        segment=segment,
        sample=sample,
        sample_token=sample_token,
        device=device,
        processes=processes,
        entry=entry,
        data=data,
        weights=weights,
        public_key=public_key,
        progress=not as_json,
        execute_script=execute,
        sources=sources,
        python=python,
    )
    code = 0 if accept_part and verdict.partial else verdict.code
    print_result({**verdict.as_dict(), "code": code}, verdict.as_text(), as_json)
    if summary is not None and key is not None:
        write_summary(verdict, summary, key)
    raise typer.Exit(code)


def check_summary(run: Path, out: Path, key: Path) -> None:
    """Refuse a summary that could not be written or signed, before anything is executed."""
    from seedless.core.errors import RunError
    from seedless.proof.keys import need_cryptography, read_ed25519_private
    from seedless.proof.verification_summary import FILE
    from seedless.runs.script_run import is_script_run

    if is_script_run(run):
        raise ConfigError(f"{run} is the run of a script: a summary is about weights, leave it out")
    need_cryptography()
    read_ed25519_private(key)
    folder = out.absolute().parent
    if os.path.lexists(out):
        raise RunError(f"{out} is there already; remove it, or choose another file")
    if not folder.is_dir():
        raise RunError(f"cannot write {out}: there is no folder {str(folder)!r}")
    inside = run.resolve() in (folder / out.name).resolve().parents
    if inside and out.resolve() != run.resolve() / FILE:
        raise RunError(f"a run folder may hold a summary as {FILE} only; got {out}")


def write_summary(verdict: Verdict, out: Path, key: Path) -> None:
    """Write what was verified, signed with the verifier's key; nothing for an invalid run."""
    from datetime import UTC, datetime

    from seedless.proof.verification_summary import sign_summary

    if not verdict.subject:
        print_line("no summary was written: a summary is about a valid run", err=True)
        return
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    write_output(out, sign_summary(verdict.as_dict(), key, now))
