"""The page against single runs: its numbers are those of the collected runs."""

from statistics import mean, stdev

import pytest

from benchmarks import one_run_page


def make_collected(scores):
    values = [{"arm": arm, "scores": dict(enumerate(found))} for arm, found in scores.items()]
    return {
        "tables": [
            {"title": "Test macro AUC by basis", "values": values},
            {"title": "All bases at once", "rows": [["", "", "0.5", ""]]},
        ]
    }


def test_the_page_is_what_was_collected():
    assert one_run_page.PAGE.read_text(encoding="utf-8") == one_run_page.make_page()


def test_spread_and_pairs_are_counted_over_all_single_runs():
    scores = {"dct": [0.7, 0.8, 0.9], "hartley": [0.6, 0.75, 0.78], "kaiming": [0.1, 0.2, 0.3]}
    found = one_run_page.describe_basis(make_collected(scores))
    assert [arm["name"] for arm in found["arms"]] == ["dct", "hartley"]
    assert found["arms"][0]["mean"] == pytest.approx(mean(scores["dct"]))
    assert found["arms"][0]["sd"] == pytest.approx(stdev(scores["dct"]))
    assert (found["best"], found["worst"]) == ("dct", "hartley")
    assert (found["opposite"], found["pairs"]) == (2, 9)  # 0.7 against 0.75 and 0.78
    assert found["widest"] == {"name": "dct", "range": pytest.approx(0.2)}
    assert found["optimism"] == pytest.approx((0.1 + 0.07) / 2)
