"""Comparing a run executed again with its trail, and one machine with another."""

from types import SimpleNamespace

import pytest
import torch

import seedless
from seedless.audit.trail_comparison import (
    DivergenceError,
    TrailComparison,
    describe_difference,
)
from seedless.proof.trail import make_entry, make_start
from seedless.train.progress_state import Position
from tests.forgery import read_statement, seal, strip_run
from tests.tiny import copy_run, fit_run, flags_restored, give

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


# A stripped run: its receipt still names the digest of every file that was left out


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("stripped") / "run")


def test_a_stripped_run_repeats(fitted, tmp_path):
    run = copy_run(fitted, tmp_path / "run")
    assert "weights.safetensors" in strip_run(run)
    assert seedless.verify(run, **give()).outcome == "identical"


FALSE = "sha256:" + 64 * "0"


@pytest.mark.parametrize(
    "name", ["trail.jsonl", "weights.safetensors", "checkpoints/epoch-0002.safetensors"]
)
def test_the_digest_of_a_file_that_was_left_out_is_compared(fitted, tmp_path, name):
    run = copy_run(fitted, tmp_path / "run")
    statement = read_statement(run)
    statement["predicate"]["files"][name] = FALSE
    if name == "weights.safetensors":
        statement["subject"][0]["digest"]["sha256"] = FALSE[7:]
    seal(run, statement, files=False)
    strip_run(run)
    assert seedless.verify(run, **give(), validate_only=True).outcome == "consistent"
    verdict = seedless.verify(run, **give())
    assert verdict.outcome == "differs"
    assert name in verdict.details[0]


def test_another_version_of_safetensors_may_write_other_bytes(fitted, tmp_path, monkeypatch):
    run = copy_run(fitted, tmp_path / "run")
    strip_run(run)
    monkeypatch.setattr("seedless.audit.trail_comparison.has_same_safetensors", lambda _: False)
    monkeypatch.setattr("seedless.audit.verdict_notes.has_same_safetensors", lambda _: False)
    monkeypatch.setattr(
        "seedless.audit.reexecution.serialize_weights", lambda best: b"another format"
    )
    verdict = seedless.verify(run, **give())
    assert verdict.outcome == "identical"
    assert any("were not compared" in detail for detail in verdict.details)
