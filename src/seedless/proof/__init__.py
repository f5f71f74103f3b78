"""File formats of the evidence on a run: trail, receipt, signature, bundle, stripped run."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.proof.bundle import open_bundle, write_bundle
    from seedless.proof.keys import make_key
    from seedless.proof.receipt import read_receipt
    from seedless.proof.signature import check_signature, sign_receipt
    from seedless.proof.trail import Trail, read_trail

__all__ = [
    "Trail",
    "check_signature",
    "make_key",
    "open_bundle",
    "read_receipt",
    "read_trail",
    "sign_receipt",
    "write_bundle",
]

__getattr__, __dir__ = lazy_names(__name__)
