"""`seedless sign`: vouch for a run's receipt with a key, or make such a key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_json


def sign(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="The folder of a finished run.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="KEY.pem", help="The private ed25519 key to sign with."),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(
            "--new-key", metavar="KEY.pem", help="Make a key here, its public half as KEY.pem.pub."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign a run's receipt, or make a key to sign with. Keep the key; hand out its public half."""
    from seedless.core.errors import SeedlessError
    from seedless.proof.signature import make_key, public_path, read_keyid, sign_receipt

    if run is None and key is None and new_key is not None:
        private = make_key(new_key)
        done = {"key": str(private), "public_key": str(public_path(private))}
        text = f"private key in {private}: keep it\npublic key in {done['public_key']}: hand it out"
    elif run is not None and key is not None and new_key is None:
        private = key
        done = {"envelope": str(sign_receipt(run, key)), "run": str(run)}
        text = f"signed {run} in {done['envelope']}"
    else:
        raise SeedlessError(
            "expected `seedless sign RUN --key KEY.pem`, or `seedless sign --new-key KEY.pem` alone"
        )
    keyid = read_keyid(private)
    if as_json:
        print_json({**done, "keyid": keyid})
    else:
        typer.echo(f"{text}\nkeyid {keyid}")
