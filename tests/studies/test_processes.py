"""Runs of a study that several processes train: the same bits, and errors that name the process."""

import pytest

from seedless.core.errors import ConfigError
from seedless.proof.receipt import read_receipt
from seedless.studies.engine import worker
from seedless.studies.engine.local_workers import run_local
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.ray_workers import execute_point
from seedless.studies.engine.runner import run_study
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import Worker
from tests.studies.plans import plan
from tests.studies.tiny_grids import make_tiny_grid

PORTABLE = {"execution": {"arithmetic": "portable"}}


def read_run(store, point):
    """Return the weights of a run, and how many processes trained it."""
    claims = read_receipt(store.run_folder(point))["predicate"]
    return store.read(point).weights, claims.get("processes", {"count": 1})["count"]


def test_a_run_on_two_processes_has_the_bits_of_one(tmp_path):
    points = make_tiny_grid(**PORTABLE).points[:1]
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    Worker(one).execute(points[0])
    run_local(two, points, processes=2)
    weights, alone = read_run(one, points[0])
    assert weights is not None
    assert alone == 1
    assert read_run(two, points[0]) == (weights, 2)


def test_a_task_of_a_cluster_trains_its_run_on_as_many_processes(tmp_path, monkeypatch):
    (point,), calls = make_tiny_grid(**PORTABLE).points[:1], []
    monkeypatch.setattr(worker, "train_on_processes", lambda *call: calls.append(call))
    execute_point(str(tmp_path), point, False, str(tmp_path), processes=3)
    assert calls == [(point.config, Store(tmp_path).run_folder(point), 3)]


def test_native_arithmetic_is_refused_before_a_run_is_recorded_as_failed(tmp_path):
    smoke = StudyOptions("smoke", device="cpu")
    with pytest.raises(ConfigError, match=r"arithmetic is native, and 2 processes"):
        run_study(plan("cifar100", smoke), tmp_path, processes=2)
    assert list((tmp_path / "failed").iterdir()) == []


def test_a_run_that_its_processes_cannot_train_has_failed_with_their_reason(tmp_path, monkeypatch):
    (point,) = make_tiny_grid(**PORTABLE).points[:1]
    write = type(point.config).to_toml
    monkeypatch.setattr(type(point.config), "to_toml", lambda self: f"{write(self)}\n[nothing]\n")
    store = Store(tmp_path)
    Worker(store, 2).execute(point)
    assert store.state(point) == "failed"
    error = store.read(point).error
    assert "process 0 of 2 failed" in error
    assert "nothing" in error


def test_a_run_that_was_begun_is_continued(tmp_path, monkeypatch):
    (point,) = make_tiny_grid(**PORTABLE).points[:1]
    commands = []
    monkeypatch.setattr(
        "seedless.core.local_group.run_processes",
        lambda arguments, count, quiet: commands.append(arguments[0]),
    )
    worker.train_on_processes(point.config, tmp_path, 2)
    (tmp_path / "config.toml").write_text(point.config.to_toml())
    worker.train_on_processes(point.config, tmp_path, 2)
    assert commands == ["train", "resume"]
