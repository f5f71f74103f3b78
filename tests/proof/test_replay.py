"""Comparing a run executed again with its trail, and one machine with another."""

import copy
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seedless.core.canonical import canonical_json
from seedless.core.config import ExecutionConfig
from seedless.numerics.environment import VARIABLES, capture_environment
from seedless.proof.replay import (
    DivergenceError,
    Mismatch,
    Replay,
    compare_values,
    describe_difference,
    judge_environment,
)
from seedless.proof.trail import make_entry, make_start
from seedless.train.progress_state import Position
from tests.forgery import alter, list_leaves, look_up, replace

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
    watch = Replay(record(*states))
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
    watch = Replay(record(*states))
    watch.begin(states[0])
    watch.epoch(states[1])
    with pytest.raises(DivergenceError) as found:
        watch.epoch(make_state(2, **change))
    assert (found.value.epoch, found.value.names) == (2, names)
    assert watch.compared == 2


def test_another_beginning_is_found_before_the_first_step():
    watch = Replay(record(make_state(0), make_state(1)))
    with pytest.raises(DivergenceError) as found:
        watch.begin(make_state(0, weight=3.0))
    assert (found.value.epoch, found.value.names) == (0, ["model/w"])
    assert "before the first step" in str(found.value)


def test_a_stretch_is_compared_from_where_it_begins():
    states = [make_state(0), make_state(1), make_state(2)]
    watch = Replay(record(*states))
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


# Field by field

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN, PLAIN)
def test_two_values_agree_exactly_if_their_json_does(one, other):
    assert compare_values(one, copy.deepcopy(one)) == []
    found = compare_values(one, other)
    # A field that is null and one that is not there say the same of a run: nothing.
    if canonical_json(drop_nulls(one)) != canonical_json(drop_nulls(other)):
        assert found
    if canonical_json(one) == canonical_json(other):
        assert not found
    mirrored = compare_values(other, one)
    assert mirrored == [Mismatch(m.field, m.here, m.recorded) for m in found]


def drop_nulls(value):
    if isinstance(value, dict):
        kept = {key: drop_nulls(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {}}
    return [drop_nulls(item) for item in value] if isinstance(value, list) else value


def test_each_leaf_that_differs_is_named_by_its_path():
    one = {"a": {"b": [1, 2], "c": 1}, "d": "x", "e": [1]}
    other = {"a": {"b": [1, 3], "c": 1.0}, "d": "x", "e": [1, 2], "f": None}
    assert compare_values(one, other) == [
        Mismatch("a.b.1", 2, 3),
        Mismatch("a.c", 1, 1.0),
        Mismatch("e", [1], [1, 2]),
    ]
    assert str(Mismatch("a.c", None, "2.0")) == "a.c: nothing there, 2.0 here"


# Machine by machine

HARMLESS = ("python", "platform", "cpu.cores", "threads.interop", "threads.intraop", "memory_bytes")
LOCAL = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED")


def test_what_of_a_machine_can_change_bits_is_decisive():
    here = {**capture_environment(), "devices": [{"name": "GPU", "memory_bytes": 1, "cudnn": 9}]}
    here["variables"] = {"MKL_CBWR": "AVX2", **dict.fromkeys(LOCAL, "0")}
    assert judge_environment(here, copy.deepcopy(here), ExecutionConfig(device="cuda")) == ([], [])
    decisive = set()
    for path in list_leaves(here):
        field = ".".join(map(str, path))
        there = replace(here, path, alter(look_up(here, path)))
        found, rest = judge_environment(there, here, ExecutionConfig(device="cuda"))
        (mismatch,) = [*found, *rest]
        assert mismatch.field == field
        harmless = field.endswith((*HARMLESS, *LOCAL))
        assert bool(rest) == harmless, field
        if found:
            decisive.add(field)
    assert {
        "packages.torch",
        "packages.numpy",
        "cpu.model",
        "cpu.capability",
        "cpu.blas.0",
        "flags.deterministic_algorithms",
        "precision.cuda matmul",
        "devices.0.name",
        "devices.0.cudnn",
        "machine",
        "variables.MKL_CBWR",
    } <= decisive


def test_devices_matter_only_to_runs_on_them():
    here = capture_environment()
    there = {**here, "devices": [*here["devices"], {"name": "another GPU"}]}
    assert judge_environment(there, here, ExecutionConfig(device="cuda"))[0]
    decisive, harmless = judge_environment(there, here, ExecutionConfig(device="cpu"))
    assert not decisive
    assert [mismatch.field for mismatch in harmless] == ["devices"]


@pytest.mark.parametrize("name", VARIABLES)
def test_every_variable_that_changes_bits_is_decisive_and_local_ones_are_not(name):
    here = {**capture_environment(), "variables": {}}
    there = {**here, "variables": {name: "1"}}
    decisive, harmless = judge_environment(there, here, ExecutionConfig(device="cpu"))
    assert bool(decisive) == (name not in LOCAL)
    assert [str(m) for m in [*decisive, *harmless]] == [f"variables.{name}: 1 there, nothing here"]
