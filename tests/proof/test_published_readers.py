"""Provenance and summaries as in-toto's own classes read them: no field that they do not know."""

import json

import pytest

from seedless.audit.verdict import Verdict
from seedless.proof.provenance import make_provenance
from seedless.proof.receipt import read_receipt
from seedless.proof.verification_summary import DETAILS, make_summary
from tests.published_tools import run_published
from tests.tiny import fit_run

# Prints nothing for a statement that fits; a field that the class does not have is an error.
READ = """
import json, sys
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.predicates.vsa.v1.vsa_pb2 import VerificationSummary
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
statement = json.load(open(sys.argv[1]))
Statement.copy_from_pb(ParseDict(statement, StatementMessage())).validate()
kinds = {"provenance": Provenance, "verification_summary": VerificationSummary}
ParseDict(statement["predicate"], kinds[statement["predicateType"].split("/")[3]]())
"""


@pytest.fixture(scope="module")
def statements(tmp_path_factory):
    receipt = read_receipt(fit_run(tmp_path_factory.mktemp("readers") / "run"))
    claims = receipt["predicate"]
    subject = {
        "weights": claims["files"]["weights.safetensors"],
        "receipt": claims["digest"],
        "attestations": {"receipt.json": "sha256:" + 64 * "c"},
    }
    verdict = Verdict("identical", "so", subject=subject, signature={"state": "none"}).as_dict()
    summary = json.loads(make_summary(verdict, "5" * 64, "2026-11-16T08:15:00Z"))
    # What the specification has and version 0.9.3 of the class has not: fields of one's own, with
    # URIs as names; the verifier's version; and more than one level.
    predicate = summary["predicate"]
    del predicate[DETAILS], predicate["verifier"]["version"]
    predicate["verifiedLevels"] = predicate["verifiedLevels"][0]
    return {"provenance": json.loads(make_provenance(receipt)), "summary": summary}


@pytest.mark.parametrize("kind", ["provenance", "summary"])
def test_the_published_classes_read_it(statements, tmp_path, kind):
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(statements[kind]))
    done = run_published("python", "-c", READ, file)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    changed = {**statements[kind], "predicate": {**statements[kind]["predicate"], "more": 1}}
    file.write_text(json.dumps(changed))
    assert "more" in run_published("python", "-c", READ, file).stderr
