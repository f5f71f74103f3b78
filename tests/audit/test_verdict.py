"""Verdicts: an outcome has one exit code, and the first line never says more than was checked."""

import json

import pytest

from seedless.audit.verdict import CODES, Verdict, describe_signature

PARTIAL = Verdict("segment identical", "it agrees", checked={"segments": [3], "of": 8})


def test_only_a_whole_check_is_ok():
    ok = {outcome for outcome in CODES if Verdict(outcome, "").ok}
    assert ok == {"identical", "consistent"}
    assert [outcome for outcome in CODES if Verdict(outcome, "").partial] == ["segment identical"]


@pytest.mark.parametrize(
    ("segments", "headline"),
    [([3], "SEGMENT 3 OF 8 IDENTICAL"), ([1, 5], "SEGMENTS 1, 5 OF 8 IDENTICAL")],
)
def test_the_headline_of_a_part_says_which_part(segments, headline):
    verdict = Verdict("segment identical", "so", checked={"segments": segments, "of": 8})
    assert verdict.headline == headline
    assert Verdict("cannot judge", "so").headline == "CANNOT JUDGE"


def test_the_text_has_remarks_in_the_first_line_and_the_signature_in_the_second():
    signature = {"state": "checked", "keyid": "ab"}
    verdict = Verdict(
        "differs", "it does", ("here", "there"), signature=signature, remarks=("old",)
    )
    assert verdict.as_text().splitlines() == [
        "DIFFERS: it does; old",
        "  signed by key ab (checked)",
        "  here",
        "  there",
    ]
    assert Verdict("invalid", "it is not").as_text() == "INVALID: it is not"


def test_a_verdict_travels_as_json():
    verdict = Verdict("differs", "so", ("a",), {"epoch": 1}, 0.5, {}, {"state": "none"}, ("b",))
    for one in (verdict, PARTIAL):
        assert Verdict.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    assert PARTIAL.as_dict()["code"] == 4


def test_an_unchecked_signature_says_how_to_check_it():
    text = describe_signature({"state": "not checked", "keyid": "ab"})
    assert text == "signed by key ab, not checked: give its public key to --public-key"
