"""`seedless sign`: sign the receipt or the files of a run with a key, or make such a key."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.argument_checks import check_exists
from seedless.cli.options import AsJson, print_result


def sign(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="The folder of a finished run.", callback=check_exists),
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="KEY.pem", help="The private key.")] = None,
    new_key: Annotated[
        Path | None, typer.Option(metavar="KEY.pem", help="Make a key, and KEY.pem.pub.")
    ] = None,
    model_signing: Annotated[
        bool, typer.Option("--model-signing", help="Write model.sig, for the tool model_signing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Sign the receipt of a run, or make a key for that.

    Keep the private key secret; give KEY.pem.pub, its public half, to others.
    Receipts are signed with an ed25519 key. With --model-signing the files of
    the run are signed with a P-256 key, in the format of OpenSSF.
    """
    from seedless.core.errors import SeedlessError

    if (run is None or key is None or new_key is not None) and (
        run is not None or key is not None or new_key is None
    ):
        raise SeedlessError(
            "expected `seedless sign RUN --key KEY.pem`, or `seedless sign --new-key KEY.pem` alone"
        )
    from seedless.proof.keys import make_key, public_path, read_keyid
    from seedless.runs.signed_run import sign_run

    if new_key is not None:
        private = make_key(new_key, "P-256" if model_signing else "ed25519")
        done = {"key": str(private), "public_key": str(public_path(private))}
        text = f"private key in {private}: keep it secret\n"
        text += f"public key in {done['public_key']}: publish it"
    else:
        assert run is not None
        assert key is not None
        private, signature = key, sign_run(run, key, model_signing=model_signing)
        if model_signing:
            done = {"signature": str(signature)}
            text = f"signed the files of {run} in {done['signature']}; others check it with\n"
            text += f"model_signing verify key {run} --signature {done['signature']} "
            text += f"--public_key {public_path(key)}"
        else:
            done = {"envelope": str(signature)}
            text = f"signed {run} in {done['envelope']}"
        done["run"] = str(run)
    keyid = read_keyid(private)
    print_result({**done, "keyid": keyid}, f"{text}\nkeyid {keyid}", as_json)
