"""Where two runs begin to differ: from their trails, then to the step by running one epoch again.

What lies within the step is located in tests/e2e/test_locate.py.
"""

import json
import shutil

import numpy as np
import pytest
import torch

import seedless
from seedless.core.config import parse_config
from seedless.core.errors import ConfigError, RunError
from seedless.runs.train import train_run
from tests.forgery import forge, read_entries, rechain, remove
from tests.tiny import (
    ENTRY,
    SETTINGS,
    answer_here,
    copy_run,
    fit_run,
    flags_restored,
    give,
    make_arrays,
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run of three epochs of four steps, with a checkpoint after each."""
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("diff") / "plain")


@pytest.fixture
def asked(monkeypatch):
    """Answer requests in this process; return the list of requests."""
    requests = []

    def answer(action, request, variables, processes=1):
        requests.append({**request, "variables": variables})
        return answer_here(action, request, variables)

    monkeypatch.setattr("seedless.audit.run_diff.run_worker", answer)
    return requests


def find(a, b, **options):
    return seedless.diff(a, b, entry=ENTRY, **options)


def fields(mismatches):
    return {mismatch.field: (mismatch.recorded, mismatch.here) for mismatch in mismatches}


# Identical


def test_a_run_and_its_repeat_are_identical(plain, tmp_path, asked):
    found = find(plain, fit_run(tmp_path / "again"), locate=True)
    assert found.identical
    assert (found.settings, found.environment, found.facts) == ((), (), ())
    assert (found.epoch, found.step, found.finding, found.notes) == (None, None, None, ())
    assert asked == []  # nothing had to be run


def test_the_folder_of_the_data_makes_no_difference(tmp_path, asked):
    draw = np.random.default_rng(0)
    numbers = np.arange(48) % 3
    runs = []
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "ours.npz"
        if not runs:
            samples = draw.normal(size=(48, 2, 250)).astype("f4")
            np.savez(
                file, X=samples, Y=np.eye(3, dtype="u1")[numbers], folds=np.arange(48) % 10 + 1
            )
        else:
            shutil.copy(tmp_path / "here" / "ours.npz", file)
        settings = {
            **SETTINGS,
            "data": {"name": str(file)},
            "model": {"name": "baseline", "small": True},
            "train": {"epochs": 1},
        }
        runs.append(train_run(parse_config(settings), tmp_path / f"run-{name}").path)
    texts = [(run / "config.toml").read_text() for run in runs]
    assert texts[0] != texts[1]
    found = seedless.diff(*runs)
    assert (found.identical, found.settings, found.facts) == (True, (), ())


# What they began with


def test_settings_environment_and_facts_that_differ_are_listed(plain, tmp_path):
    given = {**give(), "train": make_arrays(64, 9)}
    run = fit_run(tmp_path / "b", given, train={"rate": 0.002}, execution={"threads": 2})
    found = find(plain, run, replay=False)
    assert fields(found.settings) == {"train.rate": (0.001, 0.002), "execution.threads": (1, 2)}
    assert fields(found.environment) == {"threads.intraop": (1, 2)}
    assert {*fields(found.facts)} == {"data.content", "data.digest", "data.splits.train"}
    assert not found.identical


def test_equal_trails_of_unlike_settings_are_identical_and_say_what_differs(plain, tmp_path):
    run = fit_run(tmp_path / "b", train={"converged_above": 0.7})
    found = find(plain, run)
    assert found.identical
    assert fields(found.settings) == {"train.converged_above": (0.6, 0.7)}


# The epoch, from the trails alone; the step, by replay


@pytest.mark.parametrize("at_step", [0, 3, 4, 6, 11])
def test_one_flipped_bit_is_found_at_its_step(plain, tmp_path, asked, at_step):
    run = fit_run(tmp_path / "b", control={"flip_bit": "4.weight:5:3", "at_step": at_step})
    found = find(plain, run)
    epoch = at_step // 4 + 1
    assert not found.identical
    assert found.epoch == epoch
    assert "model/4.weight" in found.names
    assert found.step == at_step + 1
    assert "model/4.weight" in found.step_names
    assert all("/" in name for name in found.step_names)
    assert (found.reproduced, found.notes, found.finding) == ((True, True), (), None)
    # one epoch is run again on each side, from the checkpoint before it
    assert [(r["start"], r["epoch"], r["step"]) for r in asked] == [(epoch - 1, epoch, None)] * 2


def test_without_replay_nothing_is_run_and_no_step_is_named(plain, tmp_path, asked):
    run = fit_run(tmp_path / "b", control={"flip_bit": "4.weight:5:3", "at_step": 6})
    found = seedless.diff(plain, run, replay=False)  # an entry is not needed
    assert (found.epoch, found.step, asked) == (2, None, [])
    assert "model/4.weight" in found.names
    assert "loss" in found.names


def test_without_a_common_checkpoint_both_start_from_the_beginning(tmp_path, asked):
    a = fit_run(tmp_path / "a", train={"epochs": 5, "checkpoint_every": 2})
    b = fit_run(
        tmp_path / "b",
        train={"epochs": 5, "checkpoint_every": 3},
        control={"flip_bit": "0.bias:0:20", "at_step": 17},
    )
    found = find(a, b)
    assert (found.epoch, found.step, found.reproduced) == (5, 18, (True, True))
    assert {request["start"] for request in asked} == {0}


def test_the_latest_common_checkpoint_is_the_start(tmp_path, asked):
    a = fit_run(tmp_path / "a", train={"epochs": 5, "checkpoint_every": 2})
    flip = {"flip_bit": "0.bias:0:20", "at_step": 17}
    b = fit_run(tmp_path / "b", train={"epochs": 5}, control=flip)
    assert find(a, b).step == 18
    assert {request["start"] for request in asked} == {4}


def test_each_side_gets_the_variables_it_was_made_with(plain, tmp_path, asked):
    run = fit_run(tmp_path / "b", control={"flip_bit": "4.weight:5:3"})
    entries = read_entries(run)
    entries[0]["environment"]["variables"]["MKL_CBWR"] = "COMPATIBLE"
    forge(run, entries)
    found = find(plain, run)
    assert [request["variables"].get("MKL_CBWR") for request in asked] == [None, "COMPATIBLE"]
    assert fields(found.environment) == {"variables.MKL_CBWR": (None, "COMPATIBLE")}


def test_a_difference_before_the_first_step_is_epoch_0(plain, tmp_path, asked):
    found = find(plain, fit_run(tmp_path / "b", init={"basis": "hadamard"}))
    assert found.epoch == 0
    assert found.names == ("model/0.weight", "model/4.weight")
    assert "initialization.weights" in fields(found.facts)
    assert (found.step, found.reproduced) == (1, (True, True))


@pytest.mark.parametrize("change", [{"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.9}])
def test_runs_that_keep_other_tensors_are_not_run_again(plain, tmp_path, asked, change):
    found = find(plain, fit_run(tmp_path / "b", train=change))
    assert (found.identical, found.epoch, found.step, asked) == (False, 0, None, [])
    assert all(name.startswith("optimizer/") for name in found.names)
    assert "do not have the same tensors: another model, or another optimizer" in found.notes[0]


# A trail that its own run does not repeat


@pytest.mark.parametrize("liar", ["a", "b"])
def test_the_side_that_does_not_repeat_its_own_trail_is_named(plain, tmp_path, asked, liar):
    run = copy_run(plain, tmp_path / "b")
    (run / "receipt.json").unlink()  # of an unfinished run the trail alone is known
    entries = read_entries(run)
    entries[-1]["state"]["model/4.bias"] = 64 * "0"
    rechain(run, entries)
    a, b = (run, plain) if liar == "a" else (plain, run)
    found = find(a, b, locate=True)
    assert (found.epoch, found.names) == (3, ("model/4.bias",))
    assert found.reproduced == ((False, True) if liar == "a" else (True, False))
    assert found.step is None
    doubts, agreement = found.notes
    assert doubts.startswith(f"{run} does not repeat: executed again, epoch 3 differs from its own")
    assert str(plain) not in doubts
    assert agreement == "executed again, the two runs agree through epoch 3"


# Runs that are not finished, and folders that are none


@pytest.fixture
def killed(plain, tmp_path):
    """What a process leaves that is killed in its third epoch, while writing the trail."""
    run = copy_run(plain, tmp_path / "killed")
    for name in ("receipt.json", "metrics.json", "predictions.npz", "weights.safetensors"):
        (run / name).unlink()
    (run / "checkpoints" / "epoch-0003.safetensors").unlink()
    content = (run / "trail.jsonl").read_bytes()
    (run / "trail.jsonl").write_bytes(content[:-100])
    return run


def test_an_unfinished_run_is_compared_as_far_as_it_went(plain, killed, asked):
    found = find(plain, killed, locate=True)
    assert (found.identical, found.epoch, found.names) == (False, 3, ("length",))
    assert found.notes == ("one run ends before the other; until then they are equal",)
    assert asked == []
    assert find(killed, killed).identical


def test_a_step_is_found_in_an_unfinished_run(killed, tmp_path, asked):
    run = fit_run(tmp_path / "b", control={"flip_bit": "4.weight:5:3", "at_step": 6})
    found = find(killed, run)
    assert (found.epoch, found.step, found.reproduced) == (2, 7, (True, True))


def test_what_has_no_trail_is_refused(plain, tmp_path):
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(RunError, match=r"cannot read .*trail\.jsonl: .*is .* a run folder\?"):
            seedless.diff(plain, place)
        with pytest.raises(RunError, match=r"cannot read .*trail\.jsonl"):
            seedless.diff(place, plain)
    (tmp_path / "empty" / "trail.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match="has an empty trail: no step was recorded"):
        seedless.diff(plain, tmp_path / "empty")


def test_a_broken_chain_is_not_compared(plain, tmp_path):
    run = copy_run(plain, tmp_path / "b")
    lines = (run / "trail.jsonl").read_bytes().splitlines(keepends=True)
    (run / "trail.jsonl").write_bytes(b"".join([lines[0], lines[2], lines[1], lines[3]]))
    with pytest.raises(RunError, match="line 2 does not follow line 1"):
        seedless.diff(plain, run)


@pytest.mark.parametrize("path", [(0, "environment"), (0, "environment", "variables")])
def test_a_trail_without_its_environment_is_refused(plain, tmp_path, path):
    run = copy_run(plain, tmp_path / "b")
    (run / "receipt.json").unlink()
    rechain(run, remove(read_entries(run), path))
    with pytest.raises(RunError, match="does not say in what environment it began"):
        seedless.diff(plain, run)


# Runs of fit, and trails of one's own


def test_a_run_of_fit_needs_its_entry_to_find_the_step(plain, tmp_path, asked):
    run = fit_run(tmp_path / "b", control={"flip_bit": "4.weight:5:3"})
    found = seedless.diff(plain, run)
    assert (found.identical, found.epoch, found.step) == (False, 1, None)
    assert f"{plain} is a run of fit()" in found.notes[0]
    assert "find the step: use --entry package" in found.notes[0]
    with pytest.raises(ConfigError, match=r"run of fit\(\).* find the step: use --entry package"):
        seedless.diff(plain, run, locate=True)
    with pytest.raises(ConfigError, match=r"is a run of fit\(\)"):
        seedless.diff(plain, run, locate=True, entry_b=ENTRY)  # of the second alone
    assert asked == []


def give_other():
    return {**give(), "train": make_arrays(64, 9)}


def test_the_second_run_may_have_an_entry_of_its_own(plain, tmp_path, asked):
    run = fit_run(tmp_path / "b", give_other())
    found = find(plain, run, entry_b="tests.audit.test_run_diff:give_other")
    assert [request["entry"] for request in asked] == [
        ENTRY,
        "tests.audit.test_run_diff:give_other",
    ]
    assert (found.epoch, found.step, found.reproduced) == (1, 1, (True, True))
    same = find(plain, run)  # with the wrong arrays for the second
    assert same.reproduced == (True, False)
    assert "does not repeat" in same.notes[0]


def test_a_trail_of_ones_own_compares_with_a_run(plain, tmp_path):
    with seedless.record(tmp_path / "own", torch.nn.Linear(2, 1)) as trail:
        trail.step(step=4, epoch=1)  # the run ends its first epoch with step 4
    found = seedless.diff(plain, tmp_path / "own")
    assert (found.identical, found.recorded_loop, found.step) == (False, True, None)
    assert {"model/weight", "model/0.weight"} <= {*found.names}


def test_empty_trails_are_never_identical(plain, tmp_path):
    for name in "ab":
        seedless.record(tmp_path / name, torch.nn.Linear(2, 1)).close()
    for pair in ((tmp_path / "a", tmp_path / "b"), (plain, tmp_path / "a")):
        with pytest.raises(RunError, match="has an empty trail: no step was recorded"):
            seedless.diff(*pair)


def test_a_difference_is_plain_values(plain, tmp_path, asked):
    from dataclasses import asdict

    run = fit_run(tmp_path / "b", control={"flip_bit": "4.weight:5:3"})
    found = asdict(find(plain, run, locate=True))
    assert json.loads(json.dumps(found))["step"] == 1
