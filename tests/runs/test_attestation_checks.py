"""Files for others' tools next to a receipt: about this run, or the run is not valid."""

import json

import pytest

from seedless.audit.verdict import Verdict
from seedless.core.digests import canonical_json
from seedless.proof import model_signing, provenance, verification_summary
from seedless.proof.envelope import read_envelope, sign_payload
from seedless.proof.keys import make_key
from seedless.proof.receipt import read_receipt
from seedless.runs.attestation_checks import CHECKS, list_signed_files
from seedless.runs.validation import validate
from tests.tiny import copy_run, fit_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with all four files, the same folder without them, and another run's files."""
    folder = tmp_path_factory.mktemp("attested")
    plain = fit_run(folder / "plain")
    other = fit_run(folder / "other", order={"offset": 1})
    keys = make_key(folder / "key.pem"), make_key(folder / "model.pem", "P-256")
    for run in (plain, other):
        attest(run, copy_run(run, folder / f"{run.name}-attested"), *keys)
    return {path.name: path for path in folder.iterdir()}


def attest(run, out, key, model_key):
    """Write all four files into ``out``, a copy of ``run``."""
    receipt = read_receipt(run)
    claims, content = receipt["predicate"], provenance.make_provenance(receipt)
    (out / provenance.FILE).write_bytes(content)
    (out / provenance.ENVELOPE).write_bytes(sign_payload(content, key))
    subject = {
        "weights": claims["files"]["weights.safetensors"],
        "receipt": claims["digest"],
        "attestations": {"receipt.json": provenance.digest_receipt(receipt)},
    }
    verdict = Verdict("identical", "so", subject=subject, signature={"state": "none"})
    summary = verification_summary.sign_summary(verdict.as_dict(), key, "2026-11-16T08:15:00Z")
    (out / verification_summary.FILE).write_bytes(summary)
    model_signing.sign_model(out, list_signed_files(validate(run)), model_key)


def test_a_run_with_all_of_them_is_valid(made):
    run = made["plain-attested"]
    assert all((run / name).is_file() for name in CHECKS)
    assert validate(run).problems == ()


def test_the_files_of_a_run_are_the_receipt_and_what_it_covers(made):
    files = list_signed_files(validate(made["plain"]))
    names = {path.relative_to(made["plain"]).as_posix() for path in made["plain"].rglob("*.*")}
    assert {*files} == names - {".lock"}


@pytest.mark.parametrize("name", CHECKS)
def test_a_file_of_another_run_makes_a_run_invalid(made, tmp_path, name):
    run = copy_run(made["plain"], tmp_path / "run")
    (run / name).write_bytes((made["other-attested"] / name).read_bytes())
    (problem, *_) = validate(run).problems
    assert name in problem


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff\xfe", b"[" * 5000, b"null"])
def test_what_is_no_such_file_makes_a_run_invalid(made, tmp_path, name, content):
    run = copy_run(made["plain"], tmp_path / "run")
    (run / name).write_bytes(content)
    (problem,) = validate(run).problems
    assert name in problem


def test_provenance_cannot_say_more_than_the_receipt(made, tmp_path):
    run = copy_run(made["plain-attested"], tmp_path / "run")
    statement = json.loads((run / provenance.FILE).read_bytes())
    statement["predicate"]["runDetails"]["builder"]["id"] = "https://github.com/actions/runner"
    content = canonical_json(statement) + b"\n"
    (run / provenance.FILE).write_bytes(content)
    assert "provenance.json does not say what the receipt says" in validate(run).problems[0]
    (run / provenance.FILE).unlink()
    (run / provenance.ENVELOPE).write_bytes(sign_payload(content, made["key.pem"]))
    assert "provenance.dsse.json does not say" in validate(run).problems[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(predicateType="https://example.org/v1"),
        lambda s: s["subject"][0]["digest"].update(sha256=64 * "0"),
        lambda s: s["predicate"].update(inputAttestations=[]),
        lambda s: s["predicate"].update(inputAttestations=5),
        lambda s: s["predicate"]["verifier"].update(id="https://example.org/verifier"),
        lambda s: s.update(predicate=None),
        lambda s: s.pop("subject"),
    ],
)
def test_a_summary_must_name_these_weights_and_this_receipt(made, tmp_path, change):
    run = copy_run(made["plain"], tmp_path / "run")
    receipt = made["plain-attested"] / verification_summary.FILE
    statement = json.loads(read_envelope(receipt)[0])
    change(statement)
    signed = sign_payload(canonical_json(statement), made["key.pem"])
    (run / verification_summary.FILE).write_bytes(signed)
    (problem,) = validate(run).problems
    assert verification_summary.FILE in problem
