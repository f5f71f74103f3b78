"""Why a run did not converge is said with its numbers, and what to try."""

import pytest

from seedless.runs.convergence import describe_failure


def make_claims(part, warmup=0):
    train = {"converged_above": 0.6, "warmup_steps": warmup, "epochs": 4}
    return {
        "metrics": {"validation": part},
        "config": {"values": {"train": train, "order": {"batch_size": 64}}},
        "data": {"records": {"train": 200}},
    }


def test_a_warm_up_longer_than_the_run_is_named():
    part = {"macro_auc": 0.5, "classes": {}}
    text = describe_failure(make_claims(part, warmup=50))
    assert "never reached train.rate, since train.warmup_steps is 50 and the run has 16" in text
    assert describe_failure(make_claims(part, warmup=10)).endswith("; try a lower train.rate")


@pytest.mark.parametrize(
    ("score", "positives", "message"),
    [
        (0.0, 1, "0.0000 is not above train.converged_above = 0.6, but it rests on few positives"),
        (0.5, 40, "0.5000 is not above train.converged_above = 0.6; try train.warmup_steps"),
        (None, 0, "is not defined: no class has both positives and negatives"),
    ],
)
def test_why_a_run_did_not_converge_is_said_with_its_numbers(score, positives, message):
    part = {"macro_auc": score, "classes": {"AF": {"auc": score, "positives": positives}}}
    text = describe_failure(make_claims(part))
    assert message in text
    assert "chance" not in text
    assert ("few positives (1 of AF)" in text) is (positives == 1)
