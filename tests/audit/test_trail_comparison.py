"""Comparing a run executed again with its trail, and one machine with another."""

from types import SimpleNamespace

import pytest
import torch

from seedless.audit.trail_comparison import (
    DivergenceError,
    TrailComparison,
    describe_difference,
)
from seedless.proof.trail import make_entry, make_start
from seedless.train.progress_state import Position

# Entry by entry


def make_state(epoch, weight=1.0, loss=0.5, score=None):
    return SimpleNamespace(
        position=Position(epoch, 0, 10 * epoch),
        state={"model/w": torch.tensor([weight, 2.0]), "optimizer/step/w": torch.tensor(epoch)},
        schedule=f"sha256:{epoch}",
        loss=loss,
        score=score,
    )


def record(*states):
    return [make_start({}, states[0].state), *map(make_entry, states[1:])]


def test_a_run_that_repeats_is_compared_to_its_end():
    states = [make_state(0), make_state(1), make_state(2, score=0.75)]
    watch = TrailComparison(record(*states))
    watch.begin(states[0])
    watch.epoch(states[1])
    watch.epoch(states[2])
    assert watch.compared == 3


CHANGES = {
    "a weight": ({"weight": 1.0000001}, ["model/w"]),
    "a sign of zero": ({"weight": -0.0}, ["model/w"]),
    "the loss": ({"loss": 0.5000000000000001}, ["loss"]),
    "the score": ({"score": 0.5}, ["score"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_it_stops_at_the_first_entry_that_differs(what):
    change, names = CHANGES[what]
    base = {"weight": 0.0} if "weight" in change and change["weight"] == 0 else {}
    states = [make_state(0), make_state(1), make_state(2, **base)]
    watch = TrailComparison(record(*states))
    watch.begin(states[0])
    watch.epoch(states[1])
    with pytest.raises(DivergenceError) as found:
        watch.epoch(make_state(2, **change))
    assert found.value.difference == {"epoch": 2, "names": names}
    assert watch.compared == 2


def test_another_beginning_is_found_before_the_first_step():
    watch = TrailComparison(record(make_state(0), make_state(1)))
    with pytest.raises(DivergenceError) as found:
        watch.begin(make_state(0, weight=3.0))
    assert found.value.difference == {"epoch": 0, "names": ["model/w"]}
    assert "before the first step" in str(found.value)


def test_a_stretch_is_compared_from_where_it_begins():
    states = [make_state(0), make_state(1), make_state(2)]
    watch = TrailComparison(record(*states))
    watch.begin(states[1])
    watch.epoch(states[2])
    assert watch.compared == 2


def test_a_difference_in_words():
    assert describe_difference(0, ["model/w"]) == "before the first step: 1 tensor (model/w)"
    names = ["model/a", "model/b", "model/c", "model/d", "loss", "score"]
    assert describe_difference(7, names) == (
        "in epoch 7: 4 tensors (model/a, model/b, model/c, ...), the loss, the score"
    )
    assert describe_difference(2, ["schedule"]) == "in epoch 2: the schedule"
