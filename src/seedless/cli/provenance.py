"""`seedless provenance`: a run's receipt as SLSA Provenance, for supply-chain tools."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, Force, RunFolder, print_result, write_output


def provenance(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file; default: one in RUN.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="KEY.pem", help="Sign it with this ed25519 key.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write how a run was made, as SLSA Provenance.

    Everything in it comes from the receipt: the same run gives the same bytes.
    The file is RUN/provenance.json; with --key RUN/provenance.dsse.json.
    """
    from seedless.core.errors import RunError
    from seedless.core.files import hash_file
    from seedless.proof.envelope import read_envelope, sign_payload
    from seedless.proof.keys import read_keyid
    from seedless.proof.provenance import ENVELOPE, FILE, make_provenance
    from seedless.runs.opened_run import check_output_file
    from seedless.runs.validation import open_validated

    if out is not None:
        check_output_file(run, out, force)
    content = make_provenance(open_validated(run).receipt)
    if key is not None:
        content = sign_payload(content, key)
    file = out if out is not None else run / (FILE if key is None else ENVELOPE)
    if key is not None and out is None and file.exists() and not force:
        signer = read_envelope(file)[1]
        if signer != read_keyid(key):
            raise RunError(f"{file} is signed by key {signer}; --force replaces the signature")
    write_output(file, content)
    values = {"run": str(run), "file": str(file), "digest": hash_file(file)}
    print_result(values, f"{file}\n{values['digest']}", as_json)
