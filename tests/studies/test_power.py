"""Power and runs needed, from runs that `main` shares, against statsmodels."""

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower

from seedless.stats import tost
from seedless.studies.engine.figures import encode_png
from seedless.studies.engine.options import StudyOptions
from seedless.studies.published import main, power
from tests.studies.fake_outcomes import make_results

OPTIONS = StudyOptions(seeds=6, device="cpu")
SHIFT = {"mixed": 0.01, "mixed + weights": 0.03, "dct": 0.01, "dct + weights": 0.05}


def score(point):
    seed = int(point.replicate.removeprefix("seed "))
    return 0.9 + SHIFT.get(point.arm, 0.0) + 0.01 * ((seed * 7) % 5)


def test_every_run_is_one_of_mains():
    grid = power.make(OPTIONS)
    assert grid.blocks == ("conformer", "baseline")
    assert {*SHIFT} < {*grid.arms}
    assert {p.key for p in grid.points} < {p.key for p in main.make(OPTIONS).points}
    assert len(grid.points) == 72


def test_power_and_runs_needed_are_those_of_statsmodels():
    published = replace(OPTIONS, scale="paper", data="ptb-xl")
    results = make_results(power.make(published), published, score)
    found, _, _ = power.tabulate(results)
    pair = power.AS_PUBLISHED["conformer"]
    one, other = (list(results.scores(arm, "conformer").values()) for arm in pair)
    d = (np.mean(one) - np.mean(other)) / np.sqrt((np.var(one, ddof=1) + np.var(other, ddof=1)) / 2)
    value = found.values[0]
    assert value["d"] == pytest.approx(d)
    assert value["power"] == pytest.approx(TTestIndPower().power(d, 6, 0.05), abs=1e-6)
    needed = TTestIndPower().solve_power(d, power=0.8, alpha=0.05)
    assert value["needed"] == int(np.ceil(needed))
    assert found.rows[0][-2] == "0.71, 25"
    assert found.rows[0][-1] == f"{value['power'] - 0.71:+.2f}, {value['needed'] - 25:+d}"
    assert [row[-2] for row in found.rows[1:]] == ["", "", "0.99, 7", "", ""]
    assert value["tost"] == pytest.approx(tost(one, other, 0.015).p)


def test_power_by_n_rises_with_n_and_d_and_knows_cohens_sizes():
    results = make_results(power.make(OPTIONS), OPTIONS, score)
    by_count = power.tabulate(results)[2]
    curves = np.array([value["power"] for value in by_count.values])
    assert (np.diff(curves, axis=1) >= 0).all()
    assert (np.diff(curves[:3], axis=0) > 0).all()
    assert [row[-1] for row in by_count.rows[:3]] == ["394", "64", "26"]
    assert [row[0].split(",")[:2] for row in by_count.rows[3:]] == [
        ["found as published", " conformer"],
        ["found as published", " baseline"],
    ]


def test_arms_that_do_not_vary_have_no_effect_size_and_still_a_table_and_a_figure():
    results = make_results(power.make(OPTIONS), OPTIONS, lambda point: 0.9)
    found, _, by_count = power.tabulate(results)
    assert all(row[2] == "not defined" for row in found.rows)
    assert len(by_count.rows) == 3
    assert encode_png(power.draw(results))[:4] == b"\x89PNG"


def test_an_interval_that_holds_zero_allows_any_number_of_runs():
    assert power._show_needed(-0.1, 0.8) == "26 or more, without end"
    assert power._show_needed(0.5, 0.8) == "26 to 64"
    assert power._show_needed(-0.8, -0.5) == "26 to 64"


def test_published_effects_are_computed_again_with_cifar_among_them():
    table = power.tabulate_published()
    assert [row[0].split(":")[0] for row in table.rows] == ["conformer", "baseline", "CIFAR-100"]
    for value in table.values:
        known = TTestIndPower().power(value["d"], 20, 0.05)
        assert value["power"] == pytest.approx(known, abs=1e-6)
        needed = TTestIndPower().solve_power(value["d"], power=0.8, alpha=0.05)
        assert value["needed"] == int(np.ceil(needed))
    assert table.rows[2][3:5] == ("11 %", "11 %")
