"""The study of bases: the published four are tested apart from the fifth, and class by class."""

from dataclasses import replace

import pytest
from scipy.stats import friedmanchisquare

from seedless.studies.engine.options import StudyOptions
from seedless.studies.published import basis
from tests.studies.fake_outcomes import make_outcome, make_results

OPTIONS = StudyOptions(scale="smoke", device="cpu", seeds=6)
LEVELS = {"hartley": 0.03, "sinusoidal": 0.02, "hadamard": 0.01, "mixed": -0.2}


def score(point):
    seed = point.config.order.seed
    return 0.8 + LEVELS.get(point.arm, 0.0) + 0.015 * ((seed * (3 + len(point.arm))) % 5)


@pytest.fixture
def results():
    return make_results(basis.make(OPTIONS), OPTIONS, score)


def test_friedman_is_computed_over_the_five_and_over_the_published_four(results):
    rows = basis.test_all(results).rows
    groups = {arm: list(results.scores(arm).values()) for arm in basis.STRUCTURED}
    for row, arms in ((rows[0], basis.STRUCTURED), (rows[1], basis.PUBLISHED_FOUR)):
        expected = friedmanchisquare(*(groups[arm] for arm in arms))
        assert row[1] == f"{expected.statistic:.3f}"
        assert row[2] == f"{expected.pvalue:.3g}"
    assert rows[0][1] != rows[1][1]


def test_bases_are_compared_with_dct_as_published(results):
    tables = {table.title: table for table in basis.tabulate(results)}
    compared = tables["Each published basis against dct, paired by seed"]
    assert [row[0] for row in compared.rows] == [
        f"{arm} - dct" for arm in ("hartley", "sinusoidal", "hadamard")
    ]


def test_classes_are_corrected_together(results):
    classes = {"A": lambda p: score(p), "B": lambda p: 0.5 + 0.01 * p.config.order.seed}
    outcomes = [
        make_outcome(p, 0.8, **{name: value(p) for name, value in classes.items()})
        for p in results.grid.points
    ]
    table = basis.test_classes(replace(results, outcomes=tuple(outcomes)))
    tested, tied = table.rows
    assert tested[:2] == ("A", "9")
    assert float(tested[4]) == pytest.approx(float(tested[3]), rel=1e-2)  # the only p there is
    assert "not tested: every block is tied" in tied[-1]
