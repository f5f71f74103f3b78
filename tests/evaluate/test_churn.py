"""Churn: records matched by id, flips counted, runs that cannot be compared refused."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedless.core.errors import DataError
from seedless.evaluate.churn import compare_decisions, mcnemar_test
from seedless.evaluate.decisions import apply_thresholds, choose_thresholds
from seedless.evaluate.intervals import wilson_interval
from seedless.evaluate.predictions import Predictions, SplitPredictions
from tests.evaluate.tables import WEIGHTS, make_predictions, make_scored


def disturb(predictions, seed):
    """Return predictions of the same records by a slightly different model."""

    def change(scored, name):
        noise = make_scored(len(scored), seed=seed + len(name)).probabilities
        return replace(scored, probabilities=0.8 * scored.probabilities + 0.2 * noise)

    splits = {name: change(scored, name) for name, scored in predictions.splits.items()}
    return replace(predictions, splits=splits)


FIRST = make_predictions()
SECOND, THIRD = disturb(FIRST, 50), disturb(FIRST, 60)


def own_calls(predictions):
    held = predictions.splits["validation"]
    limits = choose_thresholds(held.probabilities, held.labels)
    return apply_thresholds(predictions.splits["test"].probabilities, limits)


def test_identical_runs_do_not_flip():
    found = compare_decisions({"a": FIRST, "b": make_predictions()})
    assert (found.exact.count, found.records) == (0, ())
    assert found.exact.rate == 0
    assert all(one.flips.count == 0 and one.records == () for one in found.classes.values())
    assert found.exact.interval.high > 0  # none seen is not none possible


def test_flips_are_those_of_each_runs_own_thresholds():
    found = compare_decisions({"a": FIRST, "b": SECOND})
    calls = own_calls(FIRST), own_calls(SECOND)
    differ = calls[0] != calls[1]
    assert differ.any()
    assert found.exact.count == differ.any(axis=1).sum()
    test = FIRST.splits["test"]
    for k, name in enumerate("abc"):
        one = found.classes[name]
        assert [flip.id for flip in one.records] == test.ids[differ[:, k]].tolist()
        assert one.flips.rate == differ[:, k].mean()
        assert one.flips.interval == wilson_interval(int(differ[:, k].sum()), 40)
        for flip in one.records:
            row = test.ids.tolist().index(flip.id)
            assert flip.calls == tuple(int(c[row, k]) for c in calls)
            assert flip.probabilities[0] == test.probabilities[row, k]


def test_mcnemar_is_the_exact_binomial_test():
    from scipy.stats import binomtest

    for first, second in ((0, 0), (1, 8), (5, 5), (0, 12), (37, 20)):
        expected = binomtest(first, first + second).pvalue if first + second else 1.0
        assert mcnemar_test(first, second).p == pytest.approx(expected, rel=1e-12)


def test_mcnemar_counts_the_records_that_one_run_alone_has_right():
    found = compare_decisions({"a": FIRST, "b": SECOND})
    labels = FIRST.splits["test"].labels
    right = [own_calls(one) == labels for one in (FIRST, SECOND)]
    for k, name in enumerate("abc"):
        test = found.classes[name].mcnemar
        assert test.first_only == (right[0][:, k] & ~right[1][:, k]).sum()
        assert test.second_only == (right[1][:, k] & ~right[0][:, k]).sum()
        assert test.first_only + test.second_only == found.classes[name].flips.count
    whole = [one.all(axis=1) for one in right]
    assert found.mcnemar.first_only == (whole[0] & ~whole[1]).sum()
    assert compare_decisions({"a": FIRST, "b": SECOND, "c": THIRD}).mcnemar is None


def test_mean_disagreement_does_not_grow_with_runs_as_flips_do():
    runs = {str(seed): disturb(FIRST, seed) for seed in range(50, 130, 10)}
    many, two = compare_decisions(runs), compare_decisions({k: runs[k] for k in ("50", "60")})
    assert many.exact.rate > 1.5 * many.disagreement
    assert two.disagreement == two.exact.rate
    pairs = [
        compare_decisions({"a": runs[a], "b": runs[b]}).exact.rate for a, b in combinations(runs, 2)
    ]
    assert many.disagreement == pytest.approx(np.mean(pairs), rel=1e-12)


def test_half_calls_all_runs_at_one_half():
    found = compare_decisions({"a": FIRST, "b": SECOND}, thresholds="half")
    said = [one.splits["test"].probabilities >= 0.5 for one in (FIRST, SECOND)]
    assert found.exact.count == (said[0] != said[1]).any(axis=1).sum()
    assert found.classes["a"].thresholds == (0.5, 0.5)


@given(st.integers(0, 30), st.permutations(range(3)))
def test_the_order_of_the_runs_and_of_the_records_does_not_show(seed, order):
    runs = {"0": FIRST, "1": disturb(FIRST, seed), "2": THIRD}
    found = compare_decisions(runs)
    turned = compare_decisions({str(place): shuffle(runs[str(place)], seed) for place in order})
    assert (turned.exact, turned.records) == (found.exact, found.records)
    for name in "abc":
        one, other = found.classes[name], turned.classes[name]
        assert one.flips == other.flips
        assert [flip.id for flip in one.records] == [flip.id for flip in other.records]
        for flip, back in zip(one.records, other.records, strict=True):
            assert [flip.calls[place] for place in order] == list(back.calls)
            assert [flip.probabilities[place] for place in order] == list(back.probabilities)


def shuffle(predictions, seed):
    def turn(scored):
        rows = np.argsort(np.sin(np.arange(len(scored)) * (seed + 1.5)))
        return SplitPredictions(scored.ids[rows], scored.probabilities[rows], scored.labels[rows])

    return replace(predictions, splits={k: turn(v) for k, v in predictions.splits.items()})


def test_of_three_runs_any_two_may_disagree():
    pairs = [
        set(compare_decisions({"x": a, "y": b}).records)
        for a, b in ((FIRST, SECOND), (SECOND, THIRD), (FIRST, THIRD))
    ]
    together = compare_decisions({"x": FIRST, "y": SECOND, "z": THIRD})
    assert set(together.records) == set.union(*pairs)


def test_of_several_classes_the_most_probable_is_called():
    one = replace(FIRST, task="multi-class")
    other = replace(SECOND, task="multi-class")
    found = compare_decisions({"a": one, "b": other})
    said = [p.splits["test"].probabilities.argmax(axis=1) for p in (one, other)]
    assert found.exact.count == (said[0] != said[1]).sum()
    assert sum(c.flips.count for c in found.classes.values()) == 2 * found.exact.count


def cut(predictions, rows):
    def take(scored):
        return SplitPredictions(scored.ids[rows], scored.probabilities[rows], scored.labels[rows])

    return replace(predictions, splits={k: take(v) for k, v in predictions.splits.items()})


def relabel(predictions):
    test = predictions.splits["test"]
    labels = test.labels.copy()
    labels[7] ^= 1
    changed = SplitPredictions(test.ids, test.probabilities, labels)
    return replace(predictions, splits={**predictions.splits, "test": changed})


REFUSED = {
    "one run": ({"a": FIRST}, {}, "expected two runs or more"),
    "other classes": (
        {"a": FIRST, "b": Predictions(("a", "b", "d"), WEIGHTS, FIRST.splits)},
        {},
        "'c' is in one of them",
    ),
    "another order of classes": (
        {"a": FIRST, "b": Predictions(("b", "a", "c"), WEIGHTS, FIRST.splits)},
        {},
        "their order differs",
    ),
    "another task": (
        {"a": FIRST, "b": replace(FIRST, task="multi-class")},
        {},
        "a is multi-label, b is multi-class",
    ),
    "fewer records": (
        {"a": FIRST, "b": cut(FIRST, slice(0, 35))},
        {},
        "b lacks records that a has: record 0035, record 0036, record 0037 and 2 more",
    ),
    "more records": ({"a": cut(FIRST, slice(1, 40)), "b": FIRST}, {}, "a lacks records that b has"),
    "other labels": ({"a": FIRST, "b": relabel(FIRST)}, {}, "label record 0007 differently"),
    "no such split": ({"a": FIRST, "b": SECOND}, {"split": "train"}, "has splits validation, test"),
    "odd thresholds": ({"a": FIRST, "b": SECOND}, {"thresholds": "best"}, "own or half"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_compared_is_refused(what):
    runs, options, complaint = REFUSED[what]
    with pytest.raises(DataError, match=complaint):
        compare_decisions(runs, **options)
