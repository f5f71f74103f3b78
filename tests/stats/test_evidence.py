"""Real results: every claim of a paper comes out as an independent computation says it does."""

import json

import pytest

from benchmarks.published.claims import CLAIMS
from benchmarks.published.page import write_page
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def expected(evidence):
    entries = json.loads((evidence / "expected.json").read_text())
    assert len({entry["id"] for entry in entries}) == len(entries)
    return {entry["id"]: entry for entry in entries}


def test_every_claim_is_known(expected):
    assert set(expected) == set(CLAIMS)


@pytest.mark.parametrize("name", CLAIMS)
def test_the_files_say(name, evidence, expected):
    found = CLAIMS[name](evidence)
    assert trim(found.value) == trim(expected[name]["recomputed_value"])
    assert (found.value is None) == (found.n == ())


def trim(value):
    """Return a value with its numbers cut to the six digits that expected.json gives."""
    if isinstance(value, dict):
        return {key: trim(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [trim(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float | int) else value


def test_the_page_is_what_the_generator_writes(evidence):
    assert (ROOT / "docs" / "reference" / "published.md").read_text() == write_page(evidence)


def test_verdicts_on_single_numbers_follow_from_rounding(evidence, expected):
    """A printed number reproduces where the recomputed one rounds to it, half either way."""
    checked = 0
    for name, entry in expected.items():
        printed = entry["paper_value"]
        if entry["verdict"] in ("reproduces", "does_not_reproduce") and is_numbers(printed):
            found = CLAIMS[name](evidence).value
            if not is_numbers(found):
                continue
            pairs = list(zip(flatten(printed), flatten(found), strict=False))
            fits = all(abs(a - b) <= 0.5001 * 10 ** -places(a) for a, b in pairs)
            assert fits == (entry["verdict"] == "reproduces"), name
            checked += 1
    assert checked > 40


def flatten(value):
    if isinstance(value, list | tuple):
        return [item for part in value for item in flatten(part)]
    return [value]


def is_numbers(value):
    return value is not None and all(isinstance(item, float | int) for item in flatten(value))


def places(number):
    return len(repr(number).partition(".")[2]) if isinstance(number, float) else 0
