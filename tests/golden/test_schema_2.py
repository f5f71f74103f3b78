"""Files of receipt schema 2, written when it was new: they must stay valid and repeat.

schema-2/fit                 a run of `fit`, made from tests/tiny.py's `give`
schema-2/trained.bundle.zip  a bundle of a run on an .npz file, with its data
"""

import json
import shutil

import pytest

import seedless
from seedless.core.errors import SeedlessError
from tests.conftest import ROOT
from tests.forgery import forge, read_entries
from tests.tiny import ENTRY, answer_here, flags_restored

FOLDER = ROOT / "tests" / "golden" / "schema-2"
FIT, BUNDLE = FOLDER / "fit", FOLDER / "trained.bundle.zip"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)
    with flags_restored():
        yield


@pytest.mark.parametrize("run", [FIT, BUNDLE], ids=["fit", "bundle"])
def test_it_validates(run):
    verdict = seedless.verify(run, validate_only=True)
    assert (verdict.outcome, verdict.details) == ("consistent", ())
    assert "schema 1" not in verdict.as_text()


def test_the_run_of_fit_repeats_to_the_bit():
    verdict = seedless.verify(FIT, entry=ENTRY)
    assert (verdict.outcome, verdict.remarks) == ("identical", ()), verdict.details


def test_the_bundle_repeats_to_the_bit_on_the_data_in_it():
    verdict = seedless.verify(BUNDLE)
    assert verdict.outcome == "identical", verdict.details
    assert verdict.remarks == ("on the data packed with it",)


def test_it_has_the_fields_that_schema_2_added():
    claims = json.loads((FIT / "receipt.json").read_bytes())["predicate"]
    assert claims["schema"] == "2.0"
    assert (claims["script"], claims["callables"]) == (None, [])
    assert claims["processes"] == {"count": 1}
    assert {*claims["data"]} >= {"content", "protocol", "splits", "repeated", "digest"}


# Negative controls


def test_one_byte_changed_is_found(tmp_path):
    content = bytearray(BUNDLE.read_bytes())
    content[content.index(b'"kind":"start"') + 3] ^= 1  # in the trail, which is stored as it is
    (tmp_path / "changed.zip").write_bytes(content)
    assert seedless.verify(tmp_path / "changed.zip", validate_only=True).outcome == "invalid"


def test_one_packed_sample_changed_is_found(tmp_path):
    content = bytearray(BUNDLE.read_bytes())
    content[content.index(b"data/X.npy") + 20_000] ^= 1
    (tmp_path / "changed.zip").write_bytes(content)
    try:
        assert not seedless.verify(tmp_path / "changed.zip").ok
    except SeedlessError as error:
        pytest.fail(f"a verdict was expected, not {error}")


def test_another_digest_of_a_split_is_found(tmp_path):
    run = shutil.copytree(FIT, tmp_path / "run")
    entries = read_entries(run)
    entries[0]["data"]["splits"]["val"] = entries[0]["data"]["splits"]["test"]
    forge(run, entries)
    assert seedless.verify(run, validate_only=True).outcome == "invalid"
