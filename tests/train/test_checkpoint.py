"""Checkpoints: every tensor comes back, every damage is refused, the last whole one is found."""

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from seedless.core.digests import canonical_json, digest, digest_value
from seedless.core.errors import RunError
from seedless.models import build
from seedless.numerics.dropout import Dropout
from seedless.train.checkpoint import (
    checkpoint_file_name,
    find_last_checkpoint,
    list_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from seedless.train.loop import train
from seedless.train.progress_state import Position
from seedless.train.state_tensors import collect_state, restore_state
from tests.train.problems import Recorder, make_problem

CONFIG = "sha256:" + 64 * "c"


def norms():
    """A model with buffers, one of them a whole number, and dropout."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(24, 4), nn.BatchNorm1d(4), Dropout(0.5, layer=0), nn.Linear(4, 3)
    )


class Saver(Recorder):
    """Writes a checkpoint every epoch, and where a run is stopped."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def epoch(self, progress):
        save_checkpoint(self.folder, progress, CONFIG)

    stop = epoch


def save_run(folder, model=norms, stop_after=None, **options):
    """Train a small problem with a checkpoint an epoch; return it as it ended."""
    problem = make_problem(model, **options)
    asked = iter([False] * (10**6 if stop_after is None else stop_after - 1) + [True])
    train(problem, (Saver(folder),), stop=lambda: next(asked))
    return problem


def same(one, other):
    return digest(one) == digest(other)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "sgd with momentum"])
@pytest.mark.parametrize("order", ["content", "loss_ranked"])
def test_every_tensor_comes_back_with_its_name_type_shape_and_bits(tmp_path, optimizer, order):
    settings = {"optimizer": optimizer.split()[0]}
    if "momentum" in optimizer:
        settings["momentum"] = 0.9
    options = {"order": {"name": order}, "train": settings}
    problem = save_run(tmp_path, **options)
    state = collect_state(problem.model, problem.optimizer, problem.order)
    kinds = {name.split("/")[0] for name in state}
    expected = {"model"} | ({"optimizer"} if optimizer != "sgd" else set())
    assert kinds == expected | ({"order"} if order == "loss_ranked" else set())
    read = read_checkpoint(tmp_path / "checkpoints" / "epoch-0003.safetensors", CONFIG)
    assert {name: (t.dtype, t.shape) for name, t in read.state.items()} == {
        name: (t.dtype, t.shape) for name, t in state.items()
    }
    assert same(read.state, state)
    assert read.start.position == Position(3, 0, 15)
    fresh = make_problem(norms, **options)
    assert not same(collect_state(fresh.model, fresh.optimizer, fresh.order), state)
    restore_state(read.state, fresh.model, fresh.optimizer, fresh.order)
    assert same(collect_state(fresh.model, fresh.optimizer, fresh.order), state)


def test_the_best_weights_and_their_score_come_back(tmp_path):
    problem = make_problem(norms)
    recorder = Recorder()
    train(problem, (recorder, Saver(tmp_path)))
    for progress in recorder.epochs():
        path = tmp_path / "checkpoints" / checkpoint_file_name(progress.position)
        best = read_checkpoint(path, CONFIG).start.best
        assert (best.epoch, best.score) == (progress.best.epoch, progress.best.score)
        assert same(best.weights, progress.best.weights)


def test_what_is_read_does_not_change_when_the_model_goes_on(tmp_path):
    problem = save_run(tmp_path)
    read = read_checkpoint(tmp_path / "checkpoints" / "epoch-0003.safetensors", CONFIG)
    restore_state(read.state, problem.model, problem.optimizer)
    before = digest(read.state)
    for parameter in problem.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    problem.optimizer.step()
    assert digest(read.state) == before


def tied():
    """Two layers that share one weight."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 3))
    model[2].weight = model[1].weight
    return model


def test_shared_weights_are_saved_and_stay_shared(tmp_path):
    problem = save_run(tmp_path, tied)
    read = read_checkpoint(tmp_path / "checkpoints" / "epoch-0003.safetensors", CONFIG)
    assert torch.equal(read.state["model/1.weight"], read.state["model/2.weight"])
    fresh = make_problem(tied)
    restore_state(read.state, fresh.model, fresh.optimizer)
    assert fresh.model[1].weight is fresh.model[2].weight
    assert same(fresh.model, problem.model)


SCRIPT = """
import sys
from pathlib import Path
from tests.train.test_checkpoint import save_run
save_run(Path(sys.argv[1]), stop_after=8, order={"name": "loss_ranked"})
"""


def test_two_processes_write_the_same_bytes(tmp_path, run_python):
    save_run(tmp_path / "here", stop_after=8, order={"name": "loss_ranked"})
    run_python("-c", SCRIPT, str(tmp_path / "there"), PYTHONHASHSEED=5, OMP_NUM_THREADS=2)
    here, there = (sorted((tmp_path / place).rglob("*")) for place in ("here", "there"))
    names = ["epoch-0001-batch-0003.safetensors", "epoch-0001.safetensors"]
    assert [path.name for path in here if path.is_file()] == names
    for one, other in zip(here, there, strict=True):
        assert one.name == other.name
        assert one.is_dir() or one.read_bytes() == other.read_bytes()


def test_within_an_epoch_the_losses_seen_so_far_are_kept(tmp_path):
    save_run(tmp_path, stop_after=8)
    path = tmp_path / "checkpoints" / "epoch-0001-batch-0003.safetensors"
    start = read_checkpoint(path, CONFIG).start
    assert start.position == Position(1, 3, 8)
    assert start.losses.shape == (15,)
    assert (start.losses > 0).all()


def test_a_checkpoint_within_an_epoch_is_replaced_by_the_next_whole_one(tmp_path):
    save_run(tmp_path, stop_after=8)
    assert [path.name for _, path in list_checkpoints(tmp_path)] == [
        "epoch-0001.safetensors",
        "epoch-0001-batch-0003.safetensors",
    ]
    problem = make_problem(norms)
    read, problems = find_last_checkpoint(tmp_path, CONFIG)
    assert problems == []
    assert read.start.position == Position(1, 3, 8)
    restore_state(read.state, problem.model, problem.optimizer, problem.order)
    train(problem, (Saver(tmp_path),), start=read.start)
    assert [position.epoch for position, _ in list_checkpoints(tmp_path)] == [1, 2, 3]
    assert not list((tmp_path / "checkpoints").glob("*batch*"))
    save_run(tmp_path / "whole")
    name = "checkpoints/epoch-0003.safetensors"
    assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run folder with three checkpoints; copy it before changing it."""
    folder = tmp_path_factory.mktemp("saved")
    save_run(folder)
    torch.set_deterministic_debug_mode("default")
    return folder


@pytest.fixture
def run(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x20])
def test_a_flipped_byte_anywhere_is_refused(run, mask):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    content = path.read_bytes()
    assert read_checkpoint(path, CONFIG)
    places = range(0, len(content), 97)
    assert len(places) > 50
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= mask
        path.write_bytes(damaged)
        with pytest.raises(RunError) as caught:
            read_checkpoint(path, CONFIG)
        assert str(path) in str(caught.value)


def test_a_cut_file_is_refused_wherever_it_was_cut(run):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    content = path.read_bytes()
    for length in (0, 1, 7, 8, 9, 500, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(RunError, match="epoch-0003"):
            read_checkpoint(path, CONFIG)
    path.write_bytes(content + b"\0")
    with pytest.raises(RunError, match="epoch-0003"):
        read_checkpoint(path, CONFIG)


def test_a_checkpoint_of_another_configuration_is_refused(run):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    with pytest.raises(RunError, match="belongs to a run of another configuration"):
        read_checkpoint(path, CONFIG.replace("c", "d"))


def test_a_renamed_checkpoint_is_refused(run):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    moved = path.rename(path.with_name("epoch-0009.safetensors"))
    with pytest.raises(RunError, match=r"holds the state of epoch-0003.safetensors"):
        read_checkpoint(moved, CONFIG)


@pytest.mark.parametrize("sealed", ["[]", '"text"', "5", "null", "{}", "{", None])
def test_a_file_with_a_strange_seal_is_refused(run, sealed):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    save_file(load_file(path), path, metadata={"seedless": sealed} if sealed else None)
    with pytest.raises(RunError, match="cannot be read as a checkpoint"):
        read_checkpoint(path, CONFIG)


@pytest.mark.parametrize("change", [{"note": "x"}, {"moved": None}])
def test_a_seal_with_a_field_more_or_less_is_refused(run, change):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    with safe_open(path, framework="pt") as file:
        meta = {**json.loads(file.metadata()["seedless"]), **change}
    del meta["digest"]
    meta = {name: value for name, value in meta.items() if value is not None}
    sealed = canonical_json({**meta, "digest": digest_value(meta)}).decode()
    save_file(load_file(path), path, metadata={"seedless": sealed})
    with pytest.raises(RunError, match="or lacks it: it was edited"):
        read_checkpoint(path, CONFIG)


def test_tensors_changed_under_an_honest_seal_are_refused(run):
    path = run / "checkpoints" / "epoch-0003.safetensors"
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    for change in ("drop", "rename", "value"):
        changed = dict(tensors)
        if change == "value":
            changed["model/1.bias"] = changed["model/1.bias"] + 1
        else:
            value = changed.pop("model/1.bias")
            if change == "rename":
                changed["model/1.base"] = value
        save_file(changed, path, metadata=metadata)
        with pytest.raises(RunError, match="does not match its digest"):
            read_checkpoint(path, CONFIG)


def test_the_last_whole_checkpoint_is_found_and_those_after_it_are_named(run):
    read, problems = find_last_checkpoint(run, CONFIG)
    assert (read.start.position.epoch, problems) == (3, [])
    for name in ("epoch-0003.safetensors", "epoch-0002.safetensors"):
        (run / "checkpoints" / name).write_bytes(b"not a checkpoint")
    read, problems = find_last_checkpoint(run, CONFIG)
    assert read.start.position == Position(1, 0, 5)
    assert ["epoch-0003" in problems[0], "epoch-0002" in problems[1]] == [True, True]
    (run / "checkpoints" / "epoch-0001.safetensors").write_bytes(b"")
    read, problems = find_last_checkpoint(run, CONFIG)
    assert read is None
    assert len(problems) == 3


def test_without_a_folder_there_is_no_last_checkpoint(tmp_path):
    assert find_last_checkpoint(tmp_path, CONFIG) == (None, [])


def test_files_that_are_no_checkpoints_are_passed_over(run):
    for name in (".epoch-0004.safetensors.77.part", "epoch-4.safetensors", "notes.txt"):
        (run / "checkpoints" / name).write_bytes(b"?")
    assert [position.epoch for position, _ in list_checkpoints(run)] == [1, 2, 3]


def test_positions_sort_as_numbers_beyond_four_digits(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for position in (Position(10000), Position(9999), Position(9999, 3), Position(2, 10000)):
        (folder / checkpoint_file_name(position)).write_bytes(b"")
    assert [(p.epoch, p.batch) for p, _ in list_checkpoints(tmp_path)] == [
        (2, 10000),
        (9999, 0),
        (9999, 3),
        (10000, 0),
    ]


def test_the_seal_is_one_key_of_canonical_json(run):
    """Two metadata keys could be written in either order: the bytes would not repeat."""
    import json

    with safe_open(run / "checkpoints" / "epoch-0002.safetensors", framework="pt") as file:
        metadata = file.metadata()
    assert list(metadata) == ["seedless"]
    assert canonical_json(json.loads(metadata["seedless"])).decode() == metadata["seedless"]


def test_a_state_of_another_model_is_refused(run):
    read = read_checkpoint(run / "checkpoints" / "epoch-0003.safetensors", CONFIG)
    other = make_problem(lambda: build("baseline", leads=2, classes=3, small=True))
    with pytest.raises(RunError, match="does not fit the model"):
        restore_state(read.state, other.model, other.optimizer)
    wider = make_problem(norms)
    wider.model[1].bias.data = torch.zeros(5)
    with pytest.raises(RunError, match="another model"):
        restore_state(read.state, wider.model, wider.optimizer)
