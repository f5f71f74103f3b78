"""Verification summaries: PASSED means one thing, and no outcome short of it becomes PASSED."""

import json
import re

import pytest

from seedless.audit.verdict import CODES, PART, Verdict
from seedless.core.digests import digest_value
from seedless.core.errors import RunError
from seedless.proof.envelope import check_envelope
from seedless.proof.keys import SignatureError, make_key, public_path, read_keyid
from seedless.proof.source_digest import describe_source
from seedless.proof.verification_summary import (
    DETAILS,
    POLICY,
    make_summary,
    sign_summary,
)

TIME = "2026-11-16T08:15:00Z"
SUBJECT = {
    "weights": "sha256:" + 64 * "a",
    "receipt": "sha256:" + 64 * "b",
    "attestations": {"receipt.json": "sha256:" + 64 * "c"},
}
SIGNATURE = {"state": "none", "keyid": None}


def summarize(outcome, **fields):
    verdict = Verdict(outcome, "so", subject=SUBJECT, signature=SIGNATURE, **fields)
    return json.loads(make_summary(verdict.as_dict(), "5" * 64, TIME))


def test_a_whole_identical_run_passes_and_claims_no_level():
    summary = summarize(
        "identical",
        remarks=("the data came from the bundle",),
        details=("identical although torch differs",),
    )
    assert summary["_type"] == "https://in-toto.io/Statement/v1"
    assert summary["predicateType"] == "https://slsa.dev/verification_summary/v1"
    assert summary["subject"] == [{"name": "weights.safetensors", "digest": {"sha256": 64 * "a"}}]
    predicate = summary["predicate"]
    assert predicate["verificationResult"] == "PASSED"
    levels = predicate["verifiedLevels"]
    assert [one for one in levels if one.startswith("SLSA_")] == ["SLSA_BUILD_LEVEL_UNEVALUATED"]
    assert "SEEDLESS_REEXECUTED_IDENTICAL" in levels
    assert predicate[DETAILS] == {
        "outcome": "identical",
        "executed": "the whole run",
        "checked": {},
        "signature": SIGNATURE,
        "remarks": ["the data came from the bundle"],
        "details": ["identical although torch differs"],
    }


@pytest.mark.parametrize("outcome", sorted({*CODES} - {"identical", "invalid"}))
def test_nothing_else_passes(outcome):
    checked = {"segments": [2, 5], "of": 8} if outcome == PART else {}
    predicate = summarize(outcome, checked=checked)["predicate"]
    assert predicate["verificationResult"] == "FAILED"
    assert predicate["verifiedLevels"] == ["FAILED"]
    assert predicate[DETAILS]["outcome"] == outcome
    assert predicate[DETAILS]["executed"] != "the whole run"


def test_an_identical_part_does_not_pass_even_if_its_outcome_says_identical():
    checked = {"segments": [2, 5], "of": 8, "token": "ab"}
    predicate = summarize("identical", checked=checked)["predicate"]
    assert predicate["verificationResult"] == "FAILED"
    assert predicate[DETAILS]["executed"] == "segments 2, 5 of 8"
    assert predicate[DETAILS]["checked"] == checked, "with its token a sample can be repeated"


def test_there_is_no_summary_of_an_invalid_run():
    for verdict in (Verdict("invalid", "so", subject=SUBJECT), Verdict("identical", "so")):
        with pytest.raises(RunError, match="about a valid run"):
            make_summary(verdict.as_dict(), "5" * 64, TIME)


def test_it_has_the_fields_that_the_specification_requires():
    predicate = summarize("identical")["predicate"]
    assert predicate["verifier"]["id"] == f"urn:seedless:verifier:ed25519:{'5' * 64}"
    version = predicate["verifier"]["version"]
    assert version == {
        "seedless": describe_source()["version"],
        "seedless_source": describe_source()["digest"],
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", predicate["timeVerified"])
    assert predicate["resourceUri"] == f"urn:seedless:run:{SUBJECT['receipt']}"
    assert predicate["inputAttestations"] == [
        {"uri": f"{predicate['resourceUri']}#receipt.json", "digest": {"sha256": 64 * "c"}}
    ]
    assert predicate["slsaVersion"] == "1.2"
    own = {name for name in predicate if ":" in name}
    assert own == {DETAILS}, "a field of one's own has a URI as its name"


def test_the_policy_is_named_with_its_digest():
    policy = summarize("identical")["predicate"]["policy"]
    assert policy["uri"] == POLICY["uri"]
    assert f"sha256:{policy['digest']['sha256']}" == digest_value(POLICY)
    changed = {**POLICY, "requires": POLICY["requires"][:1]}
    assert f"sha256:{policy['digest']['sha256']}" != digest_value(changed)


def test_the_verifier_signs_it(tmp_path):
    key, other = make_key(tmp_path / "key.pem"), make_key(tmp_path / "other.pem")
    verdict = Verdict("identical", "so", subject=SUBJECT, signature=SIGNATURE).as_dict()
    file = tmp_path / "summary.json"
    file.write_bytes(sign_summary(verdict, key, TIME))
    payload, keyid = check_envelope(file, public_path(key))
    assert keyid == read_keyid(key)
    assert json.loads(payload)["predicate"]["verifier"]["id"].endswith(keyid)
    with pytest.raises(SignatureError, match="expected a signature by key"):
        check_envelope(file, public_path(other))
    forged = payload.replace(b"PASSED", b"FAILED")
    assert forged != payload
    with pytest.raises(SignatureError, match="expected an ed25519 private key"):
        sign_summary(verdict, make_key(tmp_path / "model.pem", "P-256"), TIME)
