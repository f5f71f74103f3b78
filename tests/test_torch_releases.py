"""The record of releases of torch counts what pytest counts, and has what the package promises."""

import json

import pytest

from benchmarks import torch_releases
from benchmarks.pages import RESULTS
from seedless.numerics import tested_versions
from tests.conftest import ROOT

EVERY_OUTCOME = """
import pytest

def test_one(): pass
def test_two(): pass
def test_wrong(): assert 1 == 2
@pytest.mark.skip(reason="no device")
def test_skipped(): pass
@pytest.fixture
def broken(): raise OSError
def test_with_a_broken_fixture(broken): pass
"""


def test_every_outcome_is_counted(tmp_path):
    (tmp_path / "test_outcomes.py").write_text(EVERY_OUTCOME)
    found = torch_releases.run_tests([str(tmp_path)])
    assert (found["passed"], found["failed"], found["skipped"]) == (2, 2, 1)
    assert [name.split("::")[1] for name in found["failures"]] == [
        "test_with_a_broken_fixture",
        "test_wrong",
    ]
    assert found["reasons to skip"] == {"no device": 1}


def test_tests_that_did_not_run_are_not_recorded(tmp_path):
    (tmp_path / "test_broken.py").write_text("import no_such_package")
    with pytest.raises(SystemExit, match="pytest ended with code 2"):
        torch_releases.run_tests([str(tmp_path)])


def test_a_row_replaces_the_older_one_of_the_same_releases(tmp_path):
    for torch, outcome in [("2.15.0", "old"), ("2.11.0", "kept"), ("2.15.0", "new")]:
        path = torch_releases.add_row({"torch": torch, "python": "3.11", "at": outcome}, tmp_path)
    rows = json.loads(path.read_text())["results"]
    assert [(row["torch"], row["at"]) for row in rows] == [("2.11.0", "kept"), ("2.15.0", "new")]


@pytest.mark.parametrize("release", ["OLDEST_TESTED_TORCH", "NEWEST_TESTED_TORCH"])
def test_the_oldest_and_the_newest_release_passed_every_test(release):
    rows = json.loads((RESULTS / f"{torch_releases.NAME}.json").read_text())["results"]
    wanted = getattr(tested_versions, release)
    (row,) = [
        row
        for row in rows
        if tested_versions.read_release(row["torch"]) == wanted
        and row["folders"] == list(torch_releases.FOLDERS)
    ]
    assert row["portable check"]["same"]
    assert row["tests"]["failed"] == 0 < row["tests"]["passed"]


def test_the_target_of_make_leaves_out_the_pins_that_other_releases_refuse():
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "grep -v" in line]
    assert "torch" in line
    assert "setuptools" in line  # torch 2.11 needs one below 82
