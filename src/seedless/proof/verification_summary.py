"""SLSA Verification Summary: what a verifier found about a run, signed with the verifier's key.

An in-toto Statement with the predicate of https://slsa.dev/spec/v1.2/verification_summary. Its
result is "PASSED" for one thing only: the whole run was executed again and every bit agreed. A part
that agrees, a run that was only validated, and a machine that cannot judge are "FAILED" under that
policy, because they do not meet it; the field `DETAILS` says which of these it was. No SLSA level
is claimed, because none was evaluated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import RunError
from seedless.proof.envelope import sign_payload
from seedless.proof.keys import read_keyid
from seedless.proof.provenance import SOURCE_DIGEST
from seedless.proof.receipt import STATEMENT, WEIGHTS, describe_file, make_digest_set
from seedless.proof.source_digest import describe_source

FILE = "verification.dsse.json"
PREDICATE = "https://slsa.dev/verification_summary/v1"
SLSA_VERSION = "1.2"
# What "PASSED" means. Its digest is in every summary, so that a changed policy shows.
POLICY = {
    "uri": "urn:seedless:policy:reexecution:1",
    "requires": [
        "the run folder is consistent with its receipt",
        "the whole run was executed again, from its configuration and data of the recorded digest",
        "trail, weights, predictions and scores are identical in every bit",
    ],
}
# A custom level may not begin with "SLSA_". The other one says that no build level was evaluated.
PASSED_LEVELS = ("SLSA_BUILD_LEVEL_UNEVALUATED", "SEEDLESS_REEXECUTED_IDENTICAL")
DETAILS = "urn:seedless:verification:1"  # the specification wants a URI for a field of one's own


def sign_summary(verdict: Mapping[str, Any], key: Path, time: str) -> bytes:
    """Return a summary of a verdict in a DSSE envelope, signed with the verifier's ed25519 key."""
    return sign_payload(make_summary(verdict, read_keyid(key), time), key)


def make_summary(verdict: Mapping[str, Any], keyid: str, time: str) -> bytes:
    """Return a summary of a verdict as canonical JSON, ready to be signed.

    Args:
        verdict: the plain values of a verdict on a run that was valid.
        keyid: the id of the verifier's key.
        time: when it was verified, as in "2026-11-16T08:15:00Z".

    Example:
        >>> make_summary(verdict.as_dict(), read_keyid(key), "2026-11-16T08:15:00Z")
    """
    subject = verdict["subject"]
    if verdict["outcome"] == "invalid" or not subject:
        raise RunError(
            "no summary can be written: a summary is about a valid run, and this is none"
        )
    source = describe_source()
    resource = f"urn:seedless:run:{subject['receipt']}"
    whole = verdict["outcome"] == "identical" and not verdict["checked"]
    statement = {
        "_type": STATEMENT,
        "subject": [describe_file(WEIGHTS, subject["weights"])],
        "predicateType": PREDICATE,
        "predicate": {
            "verifier": {
                "id": name_verifier(keyid),
                "version": {"seedless": source["version"], SOURCE_DIGEST: source["digest"]},
            },
            "timeVerified": time,
            "resourceUri": resource,
            "policy": {"uri": POLICY["uri"], "digest": make_digest_set(digest_value(POLICY))},
            "inputAttestations": [
                {"uri": f"{resource}#{name}", "digest": make_digest_set(digest)}
                for name, digest in sorted(subject["attestations"].items())
            ],
            "verificationResult": "PASSED" if whole else "FAILED",
            "verifiedLevels": list(PASSED_LEVELS) if whole else ["FAILED"],
            "slsaVersion": SLSA_VERSION,
            DETAILS: {
                "outcome": verdict["outcome"],
                "executed": describe_extent(verdict),
                "checked": dict(verdict["checked"]),
                "signature": dict(verdict["signature"]),
                "remarks": list(verdict["remarks"]),
                "details": list(verdict["details"]),
            },
        },
    }
    return canonical_json(statement)


def name_verifier(keyid: str) -> str:
    """Return the URI of a verifier: who that is, the key says and nothing else."""
    return f"urn:seedless:verifier:ed25519:{keyid}"


def describe_extent(verdict: Mapping[str, Any]) -> str:
    """Return how much of a run was executed and compared, such as "segments 2, 5 of 8"."""
    if checked := verdict["checked"]:
        return f"segments {', '.join(map(str, checked['segments']))} of {checked['of']}"
    extents = {"identical": "the whole run", "differs": "all up to the first difference"}
    return extents.get(verdict["outcome"], "nothing that decides")
