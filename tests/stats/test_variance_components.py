"""Components of variance: against statsmodels' sums of squares, and against what was put in."""

import itertools

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from seedless.core.errors import StatsError
from seedless.stats.variance_components import decompose_crossed, separate_sources

RNG = np.random.default_rng(3)


def cross(*levels, repeats=1):
    """Return the labels of a crossed design, one list a source."""
    return list(zip(*[c for c in itertools.product(*map(range, levels)) for _ in range(repeats)],
                    strict=True))  # fmt: skip


def test_crossed_sums_of_squares_are_statsmodels():
    i, o, f = cross(3, 4, 2, repeats=2)
    values = RNG.normal(size=48) + np.array(i) * 0.5
    found = decompose_crossed(values, {"i": i, "o": o, "f": f})
    table = anova_lm(
        ols("y ~ C(i) * C(o) * C(f)", pd.DataFrame({"y": values, "i": i, "o": o, "f": f})).fit()
    )
    names = {"i": "C(i)", "o": "C(o)", "f": "C(f)", "ixo": "C(i):C(o)", "ixf": "C(i):C(f)",
             "oxf": "C(o):C(f)", "ixoxf": "C(i):C(o):C(f)", "repeats": "Residual"}  # fmt: skip
    assert [c.source for c in found.components] == list(names)
    for ours, theirs in names.items():
        assert found[ours].sum_of_squares == pytest.approx(table.loc[theirs, "sum_sq"], rel=1e-8)
        assert found[ours].df == table.loc[theirs, "df"]


def test_two_way_components_by_the_textbook():
    a, b = cross(4, 3, repeats=5)
    values = RNG.normal(size=60)
    found = decompose_crossed(values, {"a": a, "b": b})
    ms = {c.source: c.mean_square for c in found.components}
    assert found["repeats"].variance == ms["repeats"]
    assert found["axb"].variance == pytest.approx((ms["axb"] - ms["repeats"]) / 5)
    assert found["a"].variance == pytest.approx((ms["a"] - ms["axb"]) / 15)
    assert found["b"].variance == pytest.approx((ms["b"] - ms["axb"]) / 20)


def test_what_was_put_in_comes_out():
    initialization, order = cross(40, 40, repeats=3)
    values = (
        0.9
        + RNG.normal(0, 0.02, 40)[list(initialization)]
        + RNG.normal(0, 0.01, 40)[list(order)]
        + RNG.normal(0, 0.005, 4800)
    )
    found = decompose_crossed(values, {"initialization": initialization, "order": order})
    for source, sd in (("initialization", 0.02), ("order", 0.01), ("repeats", 0.005)):
        assert found[source].sd == pytest.approx(sd, rel=0.3), source
    assert found["initializationxorder"].share < 0.01
    assert sum(c.share for c in found.components) == pytest.approx(1)


def test_without_repeats_the_interaction_stands_for_them():
    a, b = cross(3, 4)
    found = decompose_crossed(RNG.normal(size=12), {"a": a, "b": b})
    assert [c.source for c in found.components] == ["a", "b", "axb and repeats"]
    assert found["axb and repeats"].df == 6


def test_a_deterministic_device_adds_exactly_nothing():
    a, b = cross(3, 4, repeats=2)
    once = np.repeat(RNG.normal(0.9, 0.01, 12), 2)
    found = decompose_crossed(once, {"a": a, "b": b})
    assert found["repeats"].variance == 0
    assert found["repeats"].share == pytest.approx(0, abs=1e-12)


def test_a_negative_component_is_said_to_be_negative():
    a = [0, 0, 1, 1]
    found = decompose_crossed([0.0, 1.0, 0.1, 1.1], {"fold": a})
    assert found["fold"].variance == pytest.approx((0.01 - 0.5) / 2)
    assert (found["fold"].sd, found["fold"].share) == (None, 0)
    assert found.negative == ("fold",)
    assert "Negative, and so not seen and counted as 0: fold (-0.245)" in str(found)


def test_designs_that_are_not_balanced_are_refused():
    a, b = cross(3, 4, repeats=2)
    values = RNG.normal(size=24)
    with pytest.raises(StatsError, match="needs"):
        decompose_crossed(values[:-1], {"a": a[:-1], "b": b[:-1]})
    with pytest.raises(StatsError, match="b: 23 labels for 24 values"):
        decompose_crossed(values, {"a": a, "b": b[:-1]})
    with pytest.raises(StatsError, match="b: expected at least two levels, got 1"):
        decompose_crossed(values, {"a": a, "b": [0] * 24})
    with pytest.raises(StatsError, match="name at least one source"):
        decompose_crossed(values, {})
    with pytest.raises(StatsError, match="nan"):
        decompose_crossed([np.nan, *values[1:]], {"a": a, "b": b})
    with pytest.raises(StatsError, match="there is no component 'c'; known: a, b"):
        decompose_crossed(values, {"a": a, "b": b})["c"]


def test_one_label_a_run_leaves_nothing():
    with pytest.raises(StatsError, match="give repeats"):
        decompose_crossed([1.0, 2.0, 3.0], {"seed": [1, 2, 3]})


def test_sources_varied_one_at_a_time():
    found = separate_sources(
        {"initialization": [0, 3], "order": [0, 0.5], "device operations": [0, 1]},
        noise="device operations",
    )
    rows = {row.name: row for row in found.rows}
    assert [rows[name].own for name in rows] == [4.0, -0.375, 0.5]
    assert rows["order"].sd is None
    assert found.negative == ("order",)
    assert "Not seen above device operations: order" in found.sentence
    assert separate_sources({"order": [0, 0.5]}).rows[0].own == 0.125
    with pytest.raises(StatsError, match="no group 'device'"):
        separate_sources({"order": [0, 0.5]}, noise="device")
