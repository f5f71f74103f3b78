"""File formats of the evidence on a run: trail, receipt, signature, bundle, attestations."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.proof.bundle import open_bundle
    from seedless.proof.envelope import check_envelope
    from seedless.proof.keys import make_key
    from seedless.proof.model_signing import check_model_signature
    from seedless.proof.provenance import make_provenance
    from seedless.proof.receipt import read_receipt
    from seedless.proof.recorded_loop import record
    from seedless.proof.signature import check_signature
    from seedless.proof.trail import read_trail

__all__ = [
    "check_envelope",
    "check_model_signature",
    "check_signature",
    "make_key",
    "make_provenance",
    "open_bundle",
    "read_receipt",
    "read_trail",
    "record",
]

__getattr__, __dir__ = lazy_names(__name__)
