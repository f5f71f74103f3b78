"""Files of receipt schema 1, made by an old version: they must stay valid and repeat.

old/portable        a signed run in portable arithmetic; the signer's key is old/key.pem.pub
old/fit.bundle.zip  a bundle of a run of `fit`, made from tests/tiny.py's `give`
old/study.tar.xz    a run archive of two stripped runs of a study
"""

import json
import lzma
import shutil

import pytest

import seedless
from seedless.core.errors import SeedlessError
from seedless.numerics.environment import capture_environment
from seedless.numerics.environment_difference import compare_environments
from seedless.proof.bundle import open_bundle
from seedless.runs.folder import read_config
from seedless.runs.validation import validate
from seedless.studies.engine.run_archive import unpack_run_archive
from seedless.studies.engine.store import Store
from tests.conftest import ROOT
from tests.tiny import ENTRY, answer_here, flags_restored

OLD = ROOT / "tests" / "golden" / "old"
KEY = OLD / "key.pem.pub"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)
    with flags_restored():
        yield


@pytest.fixture
def unpacked(tmp_path):
    """The runs of the study, unpacked into a store."""
    done = unpack_run_archive(OLD / "study.tar.xz", Store(tmp_path / "store"))
    assert (done.new, done.known, done.failed) == (2, 0, 0)
    return sorted((tmp_path / "store" / "runs").iterdir())


def require_identical(verdict, run):
    """Fail on a difference that nothing but the redesign can explain."""
    if verdict.outcome == "cannot judge":
        recorded = json.loads((run / "receipt.json").read_bytes())["predicate"]["environment"]
        execution = read_config(run).execution
        if other := compare_environments(recorded, capture_environment(), execution)[0]:
            pytest.skip(f"native arithmetic, and another kind of machine: {other[0]}")
    assert verdict.outcome == "identical", (verdict.sentence, verdict.details)


def test_a_signed_run_validates():
    verdict = seedless.verify(OLD / "portable", validate_only=True, public_key=KEY)
    assert verdict.outcome == "consistent", verdict.details
    assert "schema 1: its receipt does not bind" in verdict.as_text().splitlines()[0]


def test_a_run_in_portable_arithmetic_repeats_to_the_bit():
    verdict = seedless.verify(OLD / "portable")
    assert verdict.outcome == "identical", (verdict.sentence, verdict.details)
    assert "3 trail entries, weights, predictions and scores" in verdict.sentence


def test_a_bundle_validates():
    verdict = seedless.verify(OLD / "fit.bundle.zip", validate_only=True)
    assert verdict.outcome == "consistent", verdict.details


def test_a_run_of_fit_in_a_bundle_repeats_where_the_machine_allows(tmp_path):
    run = open_bundle(OLD / "fit.bundle.zip", tmp_path / "run")
    verdict = seedless.verify(OLD / "fit.bundle.zip", entry=ENTRY)
    require_identical(verdict, run)


def test_stripped_runs_unpack_and_validate(unpacked):
    assert [run.name for run in unpacked] == ["c213bb8f82ed2032", "d2e6d4dc27eb55bd"]
    for run in unpacked:
        validated = validate(run)
        assert validated.problems == ()
        assert "trail.jsonl" in validated.left_out


def test_a_stripped_run_repeats_where_the_machine_allows(unpacked):
    require_identical(seedless.verify(unpacked[0]), unpacked[0])


# Negative controls: one byte changed


def flip(content, place):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "name",
    [
        str(path.relative_to(OLD / "portable"))
        for path in sorted((OLD / "portable").rglob("*"))
        if path.is_file()
    ],
)
def test_one_byte_changed_in_a_signed_run_is_found(tmp_path, name):
    run = shutil.copytree(OLD / "portable", tmp_path / "run")
    content = (run / name).read_bytes()
    (run / name).write_bytes(flip(content, len(content) // 2))
    verdict = seedless.verify(run, validate_only=True, public_key=KEY)
    assert verdict.outcome == "invalid"


def test_a_change_that_only_the_file_digests_can_find_is_found(tmp_path):
    """Seconds of an epoch are used by nothing: without the digest of the file nobody would see."""
    run = shutil.copytree(OLD / "portable", tmp_path / "run")
    log = (run / "log.jsonl").read_text()
    (run / "log.jsonl").write_text(log.replace('"seconds":0.2', '"seconds":0.3', 1))
    verdict = seedless.verify(run, validate_only=True, public_key=KEY)
    assert verdict.outcome == "invalid"
    assert any("log.jsonl was changed" in line for line in verdict.details), verdict


def test_one_byte_changed_in_a_bundle_is_found(tmp_path):
    content = (OLD / "fit.bundle.zip").read_bytes()
    place = content.index(b'"kind":"start"')  # in the trail, which is stored and not compressed
    (tmp_path / "changed.zip").write_bytes(flip(content, place + 3))
    assert seedless.verify(tmp_path / "changed.zip", validate_only=True).outcome == "invalid"


def test_one_byte_changed_in_a_run_archive_is_found(tmp_path):
    inside = lzma.decompress((OLD / "study.tar.xz").read_bytes())
    place = inside.index(b'"macro_auc"')
    (tmp_path / "changed.tar.xz").write_bytes(lzma.compress(flip(inside, place + 3)))
    with pytest.raises(SeedlessError, match=r"metrics\.json was changed"):
        unpack_run_archive(tmp_path / "changed.tar.xz", Store(tmp_path / "store"))
