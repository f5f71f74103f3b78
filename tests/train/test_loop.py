"""The loop: what it does in which order, what it selects, where it stops, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seedless.core.config import FLOAT32_MAX
from seedless.core.digests import digest
from seedless.core.errors import ConfigError, TrainError, TrainingDivergedError, UnknownNameError
from seedless.train.learning_rate import learning_rate_at
from seedless.train.loop import merge_single_sample_batch, train
from seedless.train.progress_state import Position, Start
from seedless.train.state_tensors import collect_state, fetch_state, restore_state
from tests.train.problems import Recorder, make_problem

# 24 samples in batches of 5, of which the last has 4: five steps an epoch.
STEPS = 5


def scripted(scores, **options):
    """Return a problem whose validation scores are these, one an evaluation, and how many came."""
    answers = iter(scores)
    return replace(make_problem(**options), score=lambda probabilities, labels: next(answers))


@given(st.integers(1, 40), st.integers(1, 12))
def test_merging_keeps_every_sample_in_place_and_leaves_no_last_batch_of_one(count, size):
    rows = np.arange(count)
    batches = np.split(rows, range(size, count, size))
    joined = merge_single_sample_batch(batches)
    np.testing.assert_array_equal(np.concatenate(joined), rows)
    if size > 1 and count > 1:
        assert len(joined[-1]) > 1
    if size == 1 or count % size != 1:
        assert [len(batch) for batch in joined] == [len(batch) for batch in batches]


def test_merging_joins_the_last_two_batches():
    batches = [np.arange(3), np.arange(3, 6), np.array([6])]
    assert [batch.tolist() for batch in merge_single_sample_batch(batches)] == [
        [0, 1, 2],
        [3, 4, 5, 6],
    ]


def test_a_single_last_sample_does_not_stop_batch_norm():
    from torch import nn

    def model():
        return nn.Sequential(nn.Flatten(), nn.Linear(24, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))

    recorder = Recorder()
    train(make_problem(model, count=16, train={"epochs": 1}), (recorder,))
    assert [progress.seen for kind, progress in recorder.states if kind == "step"] == [5, 10, 16]


def test_observers_get_the_true_positions_rates_schedules_and_losses():
    problem = make_problem(train={"warmup_steps": 3})
    recorder = Recorder()
    outcome = train(problem, (recorder,))
    expected = [("", "begin", Position())]
    for epoch in range(3):
        expected += [
            ("", "step", Position(epoch, batch + 1, STEPS * epoch + batch + 1))
            for batch in range(STEPS)
        ]
        expected.append(("", "epoch", Position(epoch + 1, 0, STEPS * (epoch + 1))))
    assert recorder.heard == expected
    assert outcome.last.position == Position(3, 0, 15)
    assert not outcome.stopped
    for kind, progress in recorder.states[1:]:
        epoch = progress.position.epoch - (kind == "epoch")
        assert progress.schedule == problem.order.schedule(epoch).digest
        assert progress.rate == learning_rate_at(
            problem.config.train, epoch, progress.position.step - 1
        )
        assert progress.batches == STEPS
        if kind == "epoch":
            mean = progress.losses.double().mean().item()
            assert progress.loss == pytest.approx(mean, rel=1e-12)
        else:
            assert progress.loss is None
            assert progress.score is None


def test_observers_are_called_in_the_order_of_the_argument():
    heard = []
    train(make_problem(train={"epochs": 1}), (Recorder("a", heard), Recorder("b", heard)))
    assert [name for name, _, _ in heard] == ["a", "b"] * (1 + STEPS + 1)
    assert [kind for _, kind, _ in heard[::2]] == [kind for _, kind, _ in heard[1::2]]


def test_the_first_of_the_best_epochs_is_selected():
    problem = scripted([0.5, 0.9, 0.7, 0.9, 0.8], train={"epochs": 5})
    recorder = Recorder()
    weights = []

    class Keep(Recorder):
        def epoch(self, progress):
            weights.append(digest(problem.model))

    best = train(problem, (recorder, Keep())).best
    assert (best.epoch, best.score) == (2, 0.9)
    assert digest(best.weights) == weights[1]
    assert len(set(weights)) == 5
    assert [progress.best.epoch for progress in recorder.epochs()] == [1, 2, 2, 2, 2]


def test_an_epoch_without_a_score_is_never_preferred():
    problem = scripted([None, 0.2, None], train={"epochs": 3})
    best = train(problem).best
    assert (best.epoch, best.score) == (2, 0.2)


def test_where_no_epoch_can_be_scored_the_last_is_kept():
    problem = scripted([None, None, None], train={"epochs": 3})
    best = train(problem).best
    assert (best.epoch, best.score) == (3, None)
    assert digest(best.weights) == digest(problem.model)


def test_without_validation_the_last_epoch_is_kept():
    problem = make_problem(val=0)
    assert problem.val is None
    best = train(problem).best
    assert (best.epoch, best.score) == (3, None)
    assert digest(best.weights) == digest(problem.model)


@pytest.mark.parametrize(
    ("every", "looked_at"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (5, [5]), (9, [5])]
)
def test_every_kth_epoch_and_the_last_are_evaluated(every, looked_at):
    recorder = Recorder()
    problem = scripted([0.1] * 5, train={"epochs": 5, "evaluate_every": every})
    train(problem, (recorder,))
    scored = [m.position.epoch for m in recorder.epochs() if m.score is not None]
    assert scored == looked_at


def test_evaluating_leaves_no_trace_in_the_weights():
    """Evaluation must not touch BatchNorm's statistics, nor leave the model in evaluation mode."""
    from seedless.models import build

    def model():
        return build("baseline", leads=2, classes=3, small=True)

    often, seldom = (
        make_problem(model, train={"epochs": 2, "evaluate_every": every}) for every in (1, 2)
    )
    for problem in (often, seldom):
        train(problem)
        assert problem.model.training
    assert digest(often.model) == digest(seldom.model)


def test_a_loss_based_order_receives_the_losses_of_the_epoch():
    problem = make_problem(order={"name": "loss_ranked"})
    recorder = Recorder()
    train(problem, (recorder,), until=Position(1))
    last = recorder.epochs()[-1]
    rows = problem.order.schedule(0).batches  # by losses now
    ranked = problem.order.losses[np.argsort(-problem.order.losses, kind="stable")]
    np.testing.assert_array_equal(np.sort(ranked), np.sort(last.losses.double().numpy()))
    assert len(np.concatenate(rows)) == 24
    first = make_problem(order={"name": "loss_ranked"}).order.schedule(0)
    by_row = dict(zip(np.concatenate(first.batches).tolist(), last.losses.tolist(), strict=True))
    assert [by_row[row] for row in np.concatenate(rows).tolist()] == sorted(
        by_row.values(), reverse=True
    )


def poisoned(step=7, **options):
    """A problem with one weight made huge before a step: its loss is no number from then on."""
    return make_problem(
        control={"flip_bit": "1.weight:0:30", "at_step": step},
        loss={"name": "bce"},
        **options,
    )


@pytest.mark.parametrize("name", ["content", "loss_ranked"])
def test_a_model_that_the_last_step_of_an_epoch_ruined_is_named_before_it_is_scored(name):
    """Every loss was finite; only the validation split shows what the step did."""
    problem = make_problem(order={"name": name, "batch_size": 64}, train={"rate": FLOAT32_MAX})
    with pytest.raises(TrainingDivergedError) as caught:
        train(problem)
    message = str(caught.value)
    assert message.startswith("the run diverged in epoch 1, step 1: after it the model gives NaN f")
    assert "train.rate" in message
    assert "rank" not in message


def test_a_loss_that_is_no_number_stops_the_run_and_names_step_epoch_batch_and_samples():
    problem = poisoned()
    with torch.no_grad():
        problem.model[1].weight[0, 0] = 1.9  # its exponent's first bit makes this infinite
    recorder = Recorder()
    with pytest.raises(TrainError) as caught:
        train(problem, (recorder,))
    message = str(caught.value)
    assert message.startswith("the run diverged in epoch 2, step 8 (batch 3): the loss is not fin")
    rows = merge_single_sample_batch(problem.order.schedule(1).batches)[2]
    assert f"{len(rows)} of its 5 samples" in message
    assert all(f"train[{row}]" in message for row in problem.train.rows[rows])
    assert "train.rate" in message
    assert recorder.heard[-1] == ("", "step", Position(1, 2, 7))  # nobody is told of the bad one


def test_only_the_samples_at_fault_are_named():
    problem = make_problem()
    rows = merge_single_sample_batch(problem.order.schedule(0).batches)[1]
    problem.train.samples[rows[2]] = torch.inf
    with pytest.raises(TrainError) as caught:
        train(problem)
    message = str(caught.value)
    assert "epoch 1, step 2 (batch 2): the loss is not finite for 1 of its 5 samples" in message
    places = problem.train.rows[rows].tolist()
    assert [f"train[{place}]" in message for place in places] == [k == 2 for k in range(5)]


@pytest.mark.parametrize("until", [Position(1), Position(2), Position(3), Position(7)])
def test_until_an_epoch(until):
    outcome = train(make_problem(), until=until)
    done = min(until.epoch, 3)
    assert outcome.last.position == Position(done, 0, STEPS * done)


def test_until_a_batch_within_an_epoch():
    outcome = train(make_problem(), until=Position(1, 2, STEPS + 2))
    assert outcome.last.position == Position(1, 2, STEPS + 2)
    assert not outcome.stopped


def go_on(outcome, **options):
    """Put what a run came to into a fresh problem, and train that to its end."""
    last, problem = outcome.last, make_problem(**options)
    state = fetch_state(
        collect_state(last.problem.model, last.problem.optimizer, last.problem.order)
    )
    restore_state(state, problem.model, problem.optimizer, problem.order)
    recorder = Recorder()
    losses = last.losses[: last.seen].clone() if last.position.batch else torch.empty(0)
    train(problem, (recorder,), start=Start(last.position, last.best, losses, last.moved))
    return problem, recorder


def describe(recorder):
    """Return the fields of a trail for each epoch, without the tensors."""
    return {
        progress.position: (progress.loss, progress.score, progress.schedule, progress.best.epoch)
        for progress in recorder.epochs()
    }


@pytest.mark.parametrize("name", ["content", "pair_balance"])
def test_stopped_after_any_step_and_gone_on_with_it_ends_in_the_same_bits(name):
    options = {"order": {"name": name}, "train": {"epochs": 3, "rate": 0.05}}
    whole, recorder = make_problem(**options), Recorder()
    train(whole, (recorder,))
    expected = describe(recorder)
    for steps in range(1, 3 * STEPS + 1):
        asked = iter([False] * (steps - 1) + [True])
        outcome = train(make_problem(**options), stop=lambda asked=asked: next(asked))
        assert outcome.stopped
        assert outcome.last.position.step == steps
        problem, rest = go_on(outcome, **options)
        assert digest(problem.model) == digest(whole.model)
        found = describe(rest)
        assert found == {position: expected[position] for position in found}, steps
        assert Position(3, 0, 15) in found


def test_observers_are_called_once_and_last_when_a_run_stops():
    heard = []
    asked = iter([False, True])
    train(make_problem(), (Recorder("a", heard), Recorder("b", heard)), stop=lambda: next(asked))
    assert heard[-2:] == [("a", "stop", Position(0, 2, 2)), ("b", "stop", Position(0, 2, 2))]
    assert [kind for _, kind, _ in heard].count("stop") == 2


def test_a_run_stopped_before_any_epoch_has_selected_nothing():
    outcome = train(make_problem(), stop=lambda: True)
    with pytest.raises(TrainError, match="no weights were selected"):
        assert outcome.best


def test_bad_names_are_refused_before_anything_happens():
    for section, error in (
        ({"train": {"guard": "ignore"}}, UnknownNameError),
        ({"control": {"flip_bit": "1.wait:0:0"}}, ConfigError),
    ):
        recorder = Recorder()
        with pytest.raises(error):
            train(make_problem(**section), (recorder,))
        assert recorder.heard == []
