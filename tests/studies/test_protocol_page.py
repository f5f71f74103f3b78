"""The protocol's simulation: its tests are those of the studies, and its page is its record."""

import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import protocol
from benchmarks.archive_parts import list_points
from benchmarks.results_plan import BREAST, ECGS, list_entries
from seedless.stats import levene, paired_tost, welch_t_test
from seedless.studies.catalog import open_study
from seedless.studies.engine.options import StudyOptions
from seedless.studies.published import factorial


@pytest.fixture
def scores():
    return (
        protocol.draw_scores("one", 6, 12, 0.02),
        protocol.draw_scores("two", 6, 12, 0.03) + 0.005,
    )


def test_simulated_tests_are_those_of_the_studies(scores):
    a, b = scores
    expected = {
        protocol.test_difference: lambda x, y: welch_t_test(x, y).p,
        protocol.test_spread: lambda x, y: levene({"x": x, "y": y}).p,
    }
    for simulated, one in expected.items():
        np.testing.assert_allclose(simulated(a, b), list(map(one, a, b)), rtol=1e-9)
    found = protocol.test_equality(a, b, 0.015)
    by_pair = [paired_tost(x, y, 0.015).p for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(found, by_pair, rtol=1e-9)


def test_power_rises_with_n_and_falls_with_the_spread_and_errors_keep_their_level():
    found = protocol.simulate(400)
    by = {(row["n"], row["sd"], row["margin"]): row for row in found["equality"]}
    assert by[80, 0.02, 0.015]["power"] > by[20, 0.02, 0.015]["power"]
    assert by[50, 0.02, 0.015]["power"] > by[50, 0.03, 0.015]["power"]
    assert by[50, 0.02, 0.015]["power"] >= by[50, 0.02, 0.015]["holm"]
    assert max(row["false"] for row in found["equality"]) < 0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5
    spreads = {(row["n"], row["ratio"]): row["power"] for row in found["spread"]}
    assert spreads[25, 2.0] > spreads[25, 1.5] > spreads[25, 1.0]


def test_the_page_is_what_its_record_says():
    assert protocol.PAGE.read_text(encoding="utf-8") == protocol.make_page()


def test_the_page_counts_the_runs_of_the_study():
    options = StudyOptions("paper", seeds=50, folds=3, device="cpu")
    grid = open_study("factorial").plan(options).grid
    page = protocol.make_page()
    primary = {p.key for p in grid.points if p.replicate.startswith("seed ")}
    spread = {p.key for p in grid.points if p.replicate.startswith("order ")} - primary
    rest = {p.key for p in grid.points} - primary - spread
    # The first of the orders is the run of seed 0, which is a primary one already.
    assert [len(primary), len(spread), len(rest)] == [1800, 24 * 3 * 2, 420]
    for count in ("| 1,800 |", "| 144 |", "| 420 |"):
        assert count in page
    assert {p.arm for p in grid.points if p.key in primary} == {*factorial.PRIMARY}


def test_the_page_counts_the_runs_of_the_other_pages(tmp_path):
    for name in (ECGS, BREAST):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    entries = {entry.slug: entry for entry in list_entries(tmp_path)}
    told = protocol.make_page().partition("## The other pages")[2]
    counted = re.findall(r"^\| ([\w-]+) \|.* \| (\d+), (\d+) \|", told, re.MULTILINE)
    assert len(counted) == 12
    before = set()
    for slug, runs, new in counted:
        options = replace(entries[slug].options, device="cuda")  # as the table was planned
        keys = {point.key for point in list_points([replace(entries[slug], options=options)])}
        assert (len(keys), len(keys - before)) == (int(runs), int(new)), slug
        before |= keys


def test_primary_runs_come_first():
    grid = open_study("factorial").plan(StudyOptions("paper", seeds=3, folds=3)).grid
    kinds = [point.replicate.split()[0] for point in grid.runs]
    assert kinds == sorted(kinds, key=("seed", "order", "descriptive").index)
    assert grid.runs[0].replicate == "seed 0"
