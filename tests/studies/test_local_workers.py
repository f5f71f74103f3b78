"""The local engine: in time, beside others, and with nothing checked or read more than once."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from seedless.core.errors import StudyError
from seedless.studies.catalog import open_study
from seedless.studies.engine import local_workers as local
from seedless.studies.engine import worker
from seedless.studies.engine.local_workers import list_unfinished, order_by_replicate, run_local
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.runner import name_tables, run_study, write_progress
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import Worker, work_through
from tests.conftest import ROOT
from tests.studies.plans import plan
from tests.studies.tiny_grids import make_tiny_grid

SMOKE = StudyOptions("smoke", device="cpu")


def test_no_run_is_begun_that_would_end_too_late(tmp_path, monkeypatch):
    """By a clock of our own, on which a run takes ten seconds."""
    store, points, now, begun = Store(tmp_path), make_tiny_grid().points, [0.0], []

    def execute(self, point, *, again=False):
        begun.append(point.label)
        now[0] += 10.0
        return True

    monkeypatch.setattr(Worker, "execute", execute)
    monkeypatch.setattr(worker.time, "monotonic", lambda: now[0])
    work_through(store, points, until=25.0)
    assert len(begun) == 2  # the third would end at 30
    begun.clear()
    now[0] = 0.0
    work_through(store, points)
    assert len(begun) == 4
    begun.clear()
    work_through(store, points, until=now[0] - 1)
    assert begun == []


def test_a_study_out_of_time_says_how_far_it_is(tmp_path):
    written = run_study(plan("cifar100", SMOKE), tmp_path, limit=0.001)
    assert written.left == 8
    assert written.figure is None
    assert written.markdown.name.endswith("-unfinished.md")
    assert "0 | 0" in written.markdown.read_text()
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_is_done_counts_in_what_is_there(smoke_store):
    """A table of progress needs no whole study."""
    grid = open_study("cifar100").plan(SMOKE).grid
    store = Store(smoke_store)
    assert list_unfinished(store, grid.points) == []
    (table,) = write_progress(plan("cifar100", SMOKE), Store(smoke_store)).tables
    assert [row[1:4] for row in table.rows] == [("2", "2", "0")] * 4


def test_first_seeds_of_every_arm_come_first():
    points = order_by_replicate(make_tiny_grid().points)
    assert [p.label for p in points] == [
        "dct / seed 0",
        "kaiming / seed 0",
        "dct / seed 1",
        "kaiming / seed 1",
    ]


def test_runs_that_others_are_at_are_waited_for(tmp_path):
    """Another process holds a run for a while, and dies: the engine takes it over."""
    store, points = Store(tmp_path), make_tiny_grid().points[:2]
    code = (
        "import sys, time; from pathlib import Path;"
        "from seedless.studies.engine.store import Store;"
        "from tests.studies.tiny_grids import make_tiny_grid;"
        "claim = Store(Path(sys.argv[1])).claim(make_tiny_grid().points[0]);"
        "claim.__enter__(); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    looks = []

    def watch():
        # Waiting shows as looks at a store in which all but the held run is done.
        waiting = [p for p in points if store.state(p) != "done"]
        if waiting == [points[0]] and store.is_claimed(points[0]):
            looks.append(time.monotonic())
        if len(looks) >= 3:
            holder.kill()

    try:
        assert holder.stdout.readline() == b"held\n"
        run_local(store, points, watch=watch)
    finally:
        holder.kill()
        holder.communicate()
    assert len(looks) >= 3
    assert [store.state(point) for point in points] == ["done", "done"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_runs_of_an_absent_device_are_refused_and_not_recorded_as_failed(tmp_path):
    with pytest.raises(StudyError, match="CUDA"):
        run_study(plan("cifar100", replace(SMOKE, device="cuda")), tmp_path)
    assert list((tmp_path / "failed").iterdir()) == []


def test_a_worker_that_dies_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_start_workers", lambda *_: [1])
    with pytest.raises(StudyError, match="exit codes"):
        run_local(Store(tmp_path), make_tiny_grid().points)


def test_runs_that_were_there_are_checked_by_one_worker_each(tmp_path, monkeypatch):
    store, points, checked = Store(tmp_path), make_tiny_grid().points, []
    monkeypatch.setattr(store, "state", lambda point: "done")
    monkeypatch.setattr(store, "check", lambda point: checked.append(point.label))
    for number in range(3):
        work_through(store, points, number=number, of=3)
    assert sorted(checked) == sorted(point.label for point in points)


def test_data_are_read_once_for_many_runs(tmp_path, monkeypatch):
    import seedless.data.loading as reader

    seen, usual = [], reader.load
    monkeypatch.setattr(reader, "load", lambda config: seen.append(config) or usual(config))
    store, points = Store(tmp_path), make_tiny_grid().points[:2]
    work_through(store, points)
    assert len(seen) == 1
    alone = Store(tmp_path / "alone")
    for point in points:
        Worker(alone).execute(point)
        assert alone.read(point).weights == store.read(point).weights


def test_settings_of_ones_own_reach_every_run_and_the_name():
    options = replace(SMOKE, changes=("train.epochs=7", "execution.precision=fp32"))
    grid = open_study("basis").plan(options).grid
    assert {point.config.train.epochs for point in grid.points} == {7}
    usual = open_study("basis").plan(SMOKE).grid
    assert not {p.key for p in grid.points} & {p.key for p in usual.points}
    names = {name_tables(plan("basis", one)) for one in (options, SMOKE)}
    assert names == {"basis-smoke-simulated-train-epochs-7-execution-precision-fp32"} | {
        "basis-smoke-simulated"
    }


@pytest.mark.parametrize("change", ["init.basis=dct", "order.seed=1", "model.name=baseline"])
def test_what_a_study_is_about_cannot_be_set(change):
    with pytest.raises(StudyError, match="decides"):
        open_study("basis").plan(replace(SMOKE, changes=(change,)))


def test_arms_can_be_chosen_and_are_in_the_name():
    options = replace(SMOKE, arms=("seeded", "content"))
    grid = open_study("order").plan(options).grid
    assert grid.arms == ("seeded", "content")
    whole = {point.key for point in open_study("order").plan(SMOKE).grid.points}
    assert {point.key for point in grid.points} < whole
    assert name_tables(plan("order", options)) != name_tables(plan("order", SMOKE))
    with pytest.raises(ValueError, match="content"):
        open_study("order").plan(replace(SMOKE, arms=("contnet",)))
