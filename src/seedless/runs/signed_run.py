"""Signatures of finished runs: `sign_run` signs nothing that does not agree with its receipt."""

from pathlib import Path

from seedless.core.files import AnyPath
from seedless.proof.model_signing import sign_model
from seedless.proof.signature import sign_receipt
from seedless.runs.attestation_checks import list_signed_files
from seedless.runs.script_run import open_finished


def sign_run(run: AnyPath, key: AnyPath, *, model_signing: bool = False) -> Path:
    """Sign a finished run that agrees with its receipt; return the file of the signature.

    Args:
        run: the run folder.
        key: a private ed25519 key, which signs the receipt.
        model_signing: sign the files of the run for OpenSSF's tool instead, with a P-256 key.

    Example:
        >>> sign_run("runs/demo", "key.pem")
    """
    opened = open_finished(run)
    if model_signing:
        return sign_model(opened.path, list_signed_files(opened), Path(key))
    return sign_receipt(opened.path, Path(key))
