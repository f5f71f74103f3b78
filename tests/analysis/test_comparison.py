"""Arms of runs: what is read, what is matched, and what is said of an unfair comparison."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import seedless
from seedless.analysis.arms import ArmRuns, ScoredRun
from seedless.analysis.comparison import pair_runs
from seedless.analysis.fairness import check_runs
from seedless.core.errors import RunError, StatsError, UnknownNameError
from tests.tiny import copy_run, fit_run, flags_restored, give, make_arrays


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    """Three seeds of two bases, three of a basis and another rate, two repeats, other data."""
    folder = tmp_path_factory.mktemp("arms")
    with flags_restored():
        for seed in (1, 2, 3):
            order = {"name": "seeded", "seed": seed}
            fit_run(folder / "dct" / f"r{seed}", order=order)
            fit_run(folder / "hartley" / f"r{seed}", order=order, init={"basis": "hartley"})
            fit_run(
                folder / "both" / f"r{seed}",
                order={"name": "seeded", "seed": seed + 1},
                init={"basis": "hartley"},
                train={"rate": 0.002},
            )
        fit_run(folder / "again" / "r0", order={"name": "seeded", "seed": 1})
        fit_run(folder / "again" / "r1", order={"name": "seeded", "seed": 1})
        for offset in (0, 1):
            failed = {"converged_above": 0.99}
            fit_run(folder / "failed" / f"r{offset}", order={"offset": offset}, train=failed)
            fit_run(folder / "offset" / f"r{offset}", order={"offset": offset})
            other = {**give(), "test": make_arrays(16, 8)}
            fit_run(folder / "other" / f"r{offset}", other, order={"offset": offset})
    return folder


def read_scores(folder, *path):
    files = sorted(folder.glob("*/metrics.json"))
    return [look(json.loads(file.read_text()), path) for file in files]


def look(value, path):
    for key in path:
        value = value[key]
    return value


def test_run_folders_give_the_row_of_their_scores(arms):
    found = seedless.compare(str(arms / "dct/*"), str(arms / "hartley/*"), margin=0.1)
    a, b = (read_scores(arms / name, "test", "macro_auc") for name in ("dct", "hartley"))
    assert found.metric == "test macro_auc"
    assert found.row.welch.p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert found.row.paired.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found.matched == "3 pairs by order.seed"
    assert [warning[:26] for warning in found.warnings] == ["fewer than 10 positives: c"]


def test_one_class_and_another_split(arms):
    pair = (arms / "dct/*", arms / "hartley/*")
    found = seedless.compare(*pair, metric="auc:class 1", split="validation")
    a = read_scores(arms / "dct", "validation", "classes", "class 1", "auc")
    assert found.row.a.mean == pytest.approx(np.mean(a))
    assert found.warnings == ()  # that class has ten positives
    with pytest.raises(UnknownNameError, match=r"unknown class 'class 9'.*known: class 0, class 1"):
        seedless.compare(*pair, metric="auc:class 9")
    with pytest.raises(UnknownNameError, match=r"'macro_acu': there is no .*mean 'macro_auc'"):
        seedless.compare(*pair, metric="macro_acu")
    with pytest.raises(StatsError, match="no scores of 'train'; --split takes test, validation"):
        seedless.compare(*pair, split="train")
    with pytest.raises(StatsError, match="expected a number, got"):
        seedless.compare(*pair, metric="classes")


def test_more_than_one_factor_is_named(arms):
    pair = (arms / "dct/*", arms / "both/*")
    found = seedless.compare(*pair)
    assert "the arms differ in 2 settings" in found.warnings[0]
    assert "init.basis (dct against hartley); train.rate (0.001 against 0.002)" in found.warnings[0]
    assert found.matched == "2 pairs by order.seed; 1 of A and 1 of B have no partner"
    found = seedless.compare(*pair, factor="init.basis")
    expected = "besides init.basis the arms differ in train.rate (0.001 against 0.002)"
    assert found.warnings[0] == expected
    found = seedless.compare(*pair, factor=["init.basis", "train.rate"])
    assert "fewer than 10" in found.warnings[0]
    with pytest.raises(StatsError, match=r"do not differ in order.batch_size: it is 16 in both"):
        seedless.compare(*pair, factor="order.batch_size")
    with pytest.raises(UnknownNameError, match=r"did you mean 'init.basis'"):
        seedless.compare(*pair, factor="init.bases")


def test_starts_whose_defaults_differ_are_said_to_differ_in_more_than_the_basis(arms):
    """dct scales residual exits by 0.01 where nothing is said of it, and kaiming does not."""
    for seed in (1, 2):
        out = arms / "random" / f"r{seed}"
        if not out.exists():
            with flags_restored():
                fit_run(
                    out,
                    order={"name": "seeded", "seed": seed},
                    init={"basis": "kaiming", "seed": seed},
                )
    found = seedless.compare(arms / "dct/*", arms / "random/*", factor="init.basis")
    assert found.warnings[0].startswith("besides init.basis the arms differ in")
    assert "init.residual_scale (0.01 against 1.0)" in found.warnings[0]
    assert "init.heads (as declared against basis)" in found.warnings[0]


def test_an_arm_of_two_kinds_is_said_to_be(arms):
    mixed = [*sorted((arms / "dct").iterdir())[:2], arms / "both" / "r3"]
    found = seedless.compare(mixed, arms / "hartley/*")
    assert "arm A has runs of different settings: init.basis is dct, hartley" in found.warnings[0]


def test_repeats_of_one_run_are_one_observation(arms):
    found = seedless.compare(arms / "again/*", arms / "dct/*")
    text = str(found)
    assert "all 2 runs of arm A have the same weights" in text
    assert "n = 1 and not 2" in text
    assert "in both arms" in text
    assert "the arms have the same settings" in text
    assert found.matched.startswith("no pairs")  # one seed twice is no match


def test_a_run_that_is_counted_twice_is_named():
    def arm(name, weights):
        runs = [ScoredRun(Path(f"{name}{i}"), 0.1 * i, one, {}) for i, one in enumerate(weights)]
        return ArmRuns(name, tuple(runs))

    (told,) = check_runs(arm("A", "xyx"), arm("B", "uvw"))
    assert told == (
        "arm A counts some runs twice: 3 runs, 2 different; the first that are the same: A0, A2"
    )
    assert check_runs(arm("A", "xyz"), arm("B", "uvw")) == []


def test_a_seed_that_is_there_twice_is_named():
    def arm(name, seeds):
        runs = [ScoredRun(None, 0.9, "", {"order.seed": seed}) for seed in seeds]
        return ArmRuns(name, tuple(runs))

    pairs, told = pair_runs(arm("A", (1, 2, 2, 3)), arm("B", (1, 2, 3)))
    assert pairs is None
    assert told == "no pairs: order.seed 2 is in A 2 times, so its partner cannot be told"
    assert pair_runs(arm("A", (1, 2, 3)), arm("B", (1, 2, 3)))[0] is not None
    assert pair_runs(arm("A", (1, 2)), arm("B", (3, 4)))[1].endswith("no seeds that match")


def test_seed_free_replicates_are_matched_by_offset(arms, tmp_path):
    for name in ("r0", "r1"):
        copy_run(arms / "offset" / name, tmp_path / name)
    found = seedless.compare(arms / "offset/*", tmp_path / "*")
    assert found.matched == "2 pairs by order.offset"
    assert found.row.paired is None
    assert "all 2 paired differences are 0" in found.row.undefined[0]


def test_other_data_is_refused(arms):
    with pytest.raises(StatsError, match="not runs of the same problem: digest is sha256:"):
        seedless.compare(arms / "offset/*", arms / "other/*")


def test_an_edited_score_is_refused(arms, tmp_path):
    for name in ("r1", "r2"):
        copy_run(arms / "dct" / name, tmp_path / name)
    file = tmp_path / "r2" / "metrics.json"
    file.write_text(file.read_text().replace('"converged": true', '"converged": false'))
    with pytest.raises(RunError, match=r"not what its receipt says: metrics\.json was changed"):
        seedless.compare(tmp_path / "*", arms / "hartley/*")
    file.unlink()
    with pytest.raises(RunError, match=r"metrics\.json is missing"):
        seedless.compare(tmp_path / "*", arms / "hartley/*")


def test_what_is_no_run_is_refused_or_named(arms, tmp_path):
    for name in ("r1", "r2"):
        copy_run(arms / "dct" / name, tmp_path / name)
    (tmp_path / "notes.txt").write_text("a file beside the runs")
    found = seedless.compare(tmp_path / "*", arms / "hartley/*")
    assert any("ignored what is not a folder" in warning for warning in found.warnings)
    (tmp_path / "r3").mkdir()
    with pytest.raises(RunError, match="r3 is not a run folder"):
        seedless.compare(tmp_path / "*", arms / "hartley/*")
    with pytest.raises(StatsError, match="nothing matches"):
        seedless.compare(tmp_path / "x*", arms / "hartley/*")
    with pytest.raises(StatsError, match=r"at least two runs, got one, .*r1; a pattern such as"):
        seedless.compare(tmp_path / "r1", arms / "hartley/*")
    with pytest.raises(StatsError, match=r"is a file\. For JSON files say which number"):
        seedless.compare(tmp_path / "*.txt", arms / "hartley/*")


def test_failures_are_counted_whether_set_aside_or_not(arms):
    pair = (arms / "dct/*", arms / "hartley/*")
    low = min(read_scores(arms / "dct", "validation", "macro_auc"))
    found = seedless.compare(*pair, split="validation", converged_above=low)
    assert found.set_aside[0] == (low,)
    assert found.row.a.n == 2
    assert "not converged, and set aside: 1 of 3 in A" in found.warnings[-1]
    assert found.matched.startswith("2 pairs by order.seed; 0 of A and 1 of B")
    found = seedless.compare(arms / "dct/*", arms / "failed/*")
    assert "not converged, but counted: 0 of 3 in A and 2 of 2 in B" in str(found)
    with pytest.raises(
        StatsError, match=r"arm A: 0 of 3 runs converged \(above 1\).*lower --converged-above"
    ):
        seedless.compare(*pair, converged_above=1)


def write(folder, name, **content):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))


def test_json_files_are_matched_by_field_before_name(tmp_path):
    for seed in (3, 4, 5):
        write(tmp_path / "a", f"x_s{seed}_r.json", auc=seed / 10, seed=seed, deep={"v": [1, seed]})
        write(tmp_path / "b", f"seed{seed}.json", auc=seed / 9, deep={"v": [1, seed * 2]})
    pair = (tmp_path / "a/*", tmp_path / "b/*")
    found = seedless.compare(*pair, field="auc")
    assert found.matched == "3 pairs by the seed in the file name"
    assert seedless.compare(*pair, field="deep.v.1").row.b.mean == 8
    with pytest.raises(UnknownNameError, match=r"'deep.w': there is no 'w'; known: v"):
        seedless.compare(*pair, field="deep.w")
    with pytest.raises(StatsError, match="--factor names a setting of run folders"):
        seedless.compare(*pair, field="auc", factor="init.basis")
    write(tmp_path / "b", "seed9.json", auc=math.nan)
    with pytest.raises(StatsError, match=r"seed9.json: auc is nan"):
        seedless.compare(*pair, field="auc")
    (tmp_path / "b" / "seed9.json").write_text("{")
    with pytest.raises(StatsError, match=r"seed9.json is not valid JSON"):
        seedless.compare(*pair, field="auc")


def test_the_same_file_in_both_arms_is_said_to_be(tmp_path):
    for name in ("s1.json", "s2.json"):
        write(tmp_path / "a", name, auc=0.5 + len(name), seed=name)
        write(tmp_path / "b", name, auc=0.5 + len(name), seed=name)
    found = seedless.compare(tmp_path / "a/*", tmp_path / "b/*", field="auc")
    assert "in both arms" in str(found)
    assert "all 2 values of arm A are 7.5" in str(found)


def test_plain_numbers():
    found = seedless.compare([0.9, 0.92, 0.94], np.array([0.91, 0.93, 0.96]), paired=True)
    assert (found.metric, found.matched) == ("values", "3 pairs by place")
    assert found.row.paired.t == pytest.approx(stats.ttest_rel([9, 11, 13], [10, 12, 15]).statistic)
    assert seedless.compare([0.9, 0.8], [0.7, 0.9]).row.paired is None
    assert "all 2 values of arm A are 0.5" in str(seedless.compare([0.5, 0.5], [0.7, 0.9]))
    kept = seedless.compare([0.9, 0.8, 0.1], [0.7, 0.9], converged_above=0.5)
    assert kept.set_aside == ((0.1,), ())


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([0.9], [0.8, 0.7], {}, "arm A: expected at least 2 values, got 1"),
        ([], [0.8, 0.7], {}, "arm A: expected at least 2 values, got 0"),
        ([0.9, math.nan], [0.8, 0.7], {}, "arm A: value 2 of 2 is nan"),
        ([0.9, 0.8], "nowhere/*", {}, "arm B: nothing matches 'nowhere/\\*'"),
        (0.9, [0.8, 0.7], {}, "arm A: expected numbers or paths, got 0.9"),
        ([1, 2], [1, 2, 3], {"paired": True}, "pairs need equal numbers, got 2 and 3"),
        ([1, 2], [1, 2], {"field": "auc"}, "a field belongs to JSON files"),
        ([1, 2], [1, 3], {"published_df": True}, "give a margin, too"),
        ([1, 2], [1, 3], {"margin": 0.0}, "margin: expected a positive number"),
        (["a", 2], [1, 3], {}, "arm A: expected a sequence of real numbers"),
    ],
)
def test_bad_numbers_are_refused(a, b, options, message):
    with pytest.raises(StatsError, match=message):
        seedless.compare(a, b, **options)


def test_numbers_and_runs_do_not_mix(arms):
    with pytest.raises(StatsError, match="one arm has numbers and the other runs"):
        seedless.compare([0.9, 0.8], arms / "dct/*")
    with pytest.raises(StatsError, match="runs are matched by their seeds"):
        seedless.compare(arms / "dct/*", arms / "dct/*", paired=True)
