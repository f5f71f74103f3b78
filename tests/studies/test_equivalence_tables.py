"""Tests fixed beforehand: pairs where there are pairs, and "primary" only with enough of them."""

from dataclasses import replace

import pytest

from seedless.stats import paired_tost, tost
from seedless.studies.engine.equivalence_tables import rank_tests, tabulate_equivalence
from seedless.studies.engine.options import StudyOptions
from seedless.studies.published import golden, main
from tests.studies.fake_outcomes import make_results

OPTIONS = StudyOptions("small", seeds=6, device="cpu")
PAIR = ("conformer", "mixed + weights", "kaiming at 0.01 etf + weights")


def score(point):
    """Return scores that are alike within a seed and differ by about 0.01 between the starts."""
    seed = point.config.order.seed or point.config.order.offset or point.config.init.seed or 0
    return 0.8 + 0.02 * (seed % 4) + (0.01 + 0.001 * (seed % 3)) * ("kaiming" in point.arm)


@pytest.fixture
def headline():
    return make_results(main.make(OPTIONS), OPTIONS, score)


def test_shared_seeds_are_pairs(headline):
    table = tabulate_equivalence("t", headline, [PAIR], 0.03)
    a, b = (list(headline.scores(arm, PAIR[0]).values()) for arm in PAIR[1:])
    assert table.values[0]["p"] == pytest.approx(paired_tost(a, b, 0.03).p)
    assert table.rows[0][-1] == "equal within the margin"
    assert table.columns[4].startswith("paired TOST")
    narrow = tabulate_equivalence("t", headline, [PAIR], 0.005)
    assert narrow.rows[0][-1] == "not shown to be equal"


def test_seeds_and_offsets_are_no_pairs():
    results = make_results(golden.make(OPTIONS), OPTIONS, score)
    pair = ("baseline", "mixed", "kaiming at 0.01")
    table = tabulate_equivalence("t", results, [pair], 0.04)
    a, b = (list(results.scores(arm, pair[0]).values()) for arm in pair[1:])
    assert table.values[0]["p"] == pytest.approx(tost(a, b, 0.04).p)
    assert table.columns[4].startswith("TOST")


def test_too_few_replicates_make_a_test_secondary(headline):
    assert rank_tests(20, 20) == rank_tests(3, None) == "Primary"
    table = tabulate_equivalence("t", headline, [PAIR], 0.03, planned=20)
    assert table.title == "Secondary, with 6 of 20 planned replicates: t"
    one = make_results(main.make(replace(OPTIONS, seeds=1)), OPTIONS, score)
    table = tabulate_equivalence("t", one, [PAIR], 0.03, planned=20)
    assert table.rows[0][-1].startswith("not tested")


def test_holm_is_over_the_rows_of_a_table(headline):
    other = ("baseline", "dct + weights", "kaiming at 0.01 + weights")
    alone = tabulate_equivalence("t", headline, [PAIR], 0.03).values[0]
    both = tabulate_equivalence("t", headline, [PAIR, other], 0.03).values
    assert alone["holm"] == alone["p"]
    assert min(value["holm"] for value in both) == pytest.approx(2 * alone["p"])
