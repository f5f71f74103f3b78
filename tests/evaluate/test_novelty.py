"""Novelty scores against scipy, at the edges of float64, and for what they can tell apart."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import roc_auc_score

from seedless.core.errors import DataError, UnknownNameError
from seedless.evaluate.novelty import (
    energy,
    entropy,
    find_logits,
    max_logit,
    score_novelty,
    separate,
)

LOGITS = 4 * np.sin(np.arange(35.0) ** 1.5).reshape(7, 5)


def test_multi_class_scores():
    p = softmax(LOGITS, axis=1)
    np.testing.assert_allclose(entropy(LOGITS, "multi-class"), scipy_entropy(p, axis=1), rtol=1e-12)
    np.testing.assert_allclose(energy(LOGITS, "multi-class"), -logsumexp(LOGITS, axis=1))
    np.testing.assert_array_equal(max_logit(LOGITS, "multi-class"), -LOGITS.max(axis=1))


def test_multi_label_scores():
    p = expit(LOGITS)
    binary = scipy_entropy(np.stack([p, 1 - p]), axis=0).sum(axis=1)
    np.testing.assert_allclose(entropy(LOGITS), binary, rtol=1e-12)
    np.testing.assert_allclose(energy(LOGITS), -np.log1p(np.exp(LOGITS)).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(max_logit(LOGITS), -LOGITS.max(axis=1))


def test_nothing_overflows():
    huge = np.array([[1e4, -1e4], [-1e4, -1e4], [1e4, 1e4], [800.0, 0.0]])
    for task in ("multi-label", "multi-class"):
        for score in (entropy, energy, max_logit):
            assert np.isfinite(score(huge, task)).all()
    np.testing.assert_allclose(entropy(huge), [0, 0, 0, np.log(2)])
    np.testing.assert_allclose(entropy(huge, "multi-class"), [0, np.log(2), np.log(2), 0])
    np.testing.assert_allclose(energy(huge), [-1e4, 0, -2e4, -800 - np.log(2)])


def test_higher_is_more_unusual():
    sure, unsure = np.array([[8.0, -8, -8]]), np.array([[-1.0, -1, -1]])
    for task in ("multi-label", "multi-class"):
        for name in ("entropy", "energy", "max_logit"):
            scored = [score_novelty(name, logits=z, task=task)[0] for z in (sure, unsure)]
            assert scored[0] < scored[1], (name, task)


def test_logits_come_back_from_probabilities():
    np.testing.assert_allclose(find_logits(expit(LOGITS)), LOGITS, rtol=1e-9)
    back = find_logits(softmax(LOGITS, axis=1), "multi-class")
    shift = LOGITS - back
    np.testing.assert_allclose(shift, shift[:, :1].repeat(5, axis=1), atol=1e-9)
    ends = find_logits(np.array([[0.0, 1.0, 0.5]]))
    np.testing.assert_allclose(ends, [[-708.396, 36.7368, 0]], atol=1e-3)
    assert np.isfinite(find_logits(np.array([[0.0, 1.0]]), "multi-class")).all()


def test_scores_from_probabilities_where_they_hold_them():
    p, q = expit(LOGITS), softmax(LOGITS, axis=1)
    for name, score in (("entropy", entropy), ("energy", energy), ("max_logit", max_logit)):
        np.testing.assert_allclose(score_novelty(name, probabilities=p), score(LOGITS), rtol=1e-8)
    found = score_novelty("entropy", probabilities=q, task="multi-class")
    np.testing.assert_allclose(found, entropy(LOGITS, "multi-class"), rtol=1e-9)
    found = score_novelty("max_logit", probabilities=q, task="multi-class")
    np.testing.assert_allclose(found, -np.log(q.max(axis=1)), rtol=1e-12)
    with pytest.raises(DataError, match="the energy needs logits"):
        score_novelty("energy", probabilities=q, task="multi-class")


def test_separation_is_the_area_under_the_curve():
    usual, unusual = LOGITS, 0.3 * LOGITS[:4] - 1
    truth = [0] * 7 + [1] * 4
    for row, score in zip(separate(usual, unusual), (entropy, energy, max_logit), strict=True):
        both = score(np.concatenate([usual, unusual]))
        assert row.auc == pytest.approx(roc_auc_score(truth, both))
        assert (row.score, row.usual, row.unusual) == (score.__name__, 7, 4)
    assert [row.auc for row in separate(LOGITS, LOGITS)] == [0.5] * 3  # nothing to tell apart


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": LOGITS, "probabilities": LOGITS}, "both or neither"),
        ({}, "both or neither"),
        ({"logits": [[np.nan, 1.0]]}, "finite"),
        ({"logits": [1.0, 2.0]}, r"shape \(n, classes\)"),
        ({"logits": np.zeros((0, 3))}, "not empty"),
        ({"probabilities": [[1.5, 0.0]]}, "from 0 to 1"),
        ({"probabilities": [[0.4, 0.4]], "task": "multi-class"}, "sum to 1"),
        ({"logits": LOGITS, "task": "ranking"}, "unknown task 'ranking'"),
    ],
)
def test_what_cannot_be_scored(arguments, message):
    with pytest.raises((DataError, UnknownNameError), match=message):
        score_novelty("entropy", **arguments)


def test_unknown_scores_and_unlike_sets_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'energy'"):
        score_novelty("enrgy", logits=LOGITS)
    with pytest.raises(DataError, match="5 and of 3 classes"):
        separate(LOGITS, LOGITS[:, :3])
