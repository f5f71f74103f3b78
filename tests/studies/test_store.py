"""A store keeps every run once, whoever is killed, and never passes a broken one on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from seedless.core.digests import canonical_json
from seedless.core.errors import RunError, StudyError
from seedless.numerics.counter_random import draw_uniform
from seedless.studies.engine.arm_tables import tabulate_progress
from seedless.studies.engine.grid import Point, make_grid
from seedless.studies.engine.results import check_same_data, read_results
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import Worker, work_through
from tests.conftest import ROOT
from tests.forgery import read_statement, seal, write_statement
from tests.studies.tiny_grids import OPTIONS, make_config, make_tiny_grid

STUDY = ("cifar100", "--arms", "dct,kaiming_normal")  # four runs


def run_study(store):
    """Start a study in a process group of its own."""
    command = [sys.executable, "-m", "seedless", "study", "run", *STUDY, "--device", "cpu"]
    return subprocess.Popen(
        [*command, "--store", str(store)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process):
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors.decode()


def kill_when(store, process, ready, delay):
    """Kill the study and its workers once something has happened, a little later."""
    while not ready():
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.02)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def read_receipts(store):
    files = sorted(store.glob("runs/*/receipt.json"))
    return {file.parent.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def test_a_study_killed_at_any_moment_goes_on(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    delays = draw_uniform(0, "moments to kill a study at", 2)
    moments = ((lambda: any(killed.glob("runs/*"))), (lambda: bool(read_receipts(killed))))
    for ready, delay in zip(moments, delays.tolist(), strict=True):
        kill_when(killed, run_study(killed), ready, delay)
    before = read_receipts(killed)
    assert before, "the second kill waits for a finished run"
    finish(run_study(killed))
    after = read_receipts(killed)
    assert len(after) == 4
    assert {key: after[key] for key in before} == before  # none was made twice
    finish(run_study(whole))
    for file in sorted((whole / "tables").iterdir()):
        assert (killed / "tables" / file.name).read_bytes() == file.read_bytes()
    weights = [
        {key: json.loads(text)["predicate"]["weights"] for key, (_, text) in found.items()}
        for found in (after, read_receipts(whole))
    ]
    assert weights[0] == weights[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One finished run."""
    point, store = make_tiny_grid().points[0], Store(tmp_path_factory.mktemp("store"))
    work_through(store, [point])
    return store, point


def test_a_finished_run_is_found_not_made_again(made):
    store, point = made
    before = read_receipts(store.folder)
    assert store.state(point) == "done"
    assert Worker(store).execute(point)
    assert read_receipts(store.folder) == before


def test_a_damaged_run_is_neither_used_nor_replaced(made, tmp_path):
    store, point = made
    shutil.copytree(store.folder, tmp_path / "copy")
    copy = Store(tmp_path / "copy")
    weights = copy.run_folder(point) / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(RunError, match="Remove the folder"):
        Worker(copy).execute(point)
    assert weights.read_bytes() == content


@pytest.fixture
def pair(two, tmp_path):
    """A store that a test may ruin, with the runs of two seeds, and their points."""
    store, points = two
    shutil.copytree(store.folder, tmp_path / "pair")
    return Store(tmp_path / "pair"), points


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two finished runs that differ in a seed."""
    points, store = make_tiny_grid().points[:2], Store(tmp_path_factory.mktemp("two"))
    work_through(store, points)
    return store, points


def test_two_runs_that_were_swapped_are_not_tabulated(pair, tmp_path):
    store, (one, other) = pair
    assert [store.read(point).ok for point in (one, other)] == [True, True]
    store.run_folder(one).rename(tmp_path / "aside")
    store.run_folder(other).rename(store.run_folder(one))
    (tmp_path / "aside").rename(store.run_folder(other))
    for point in (one, other):
        for use in (store.read, store.check):
            with pytest.raises(RunError, match=r"is another run than .*order\.seed should be"):
                use(point)
    grid = make_grid("two", ("init.basis",), [one, other])
    with pytest.raises(RunError, match="is another run than"):
        read_results(grid, store, OPTIONS)
    with pytest.raises(RunError, match="is another run than"):
        tabulate_progress(grid, store)


def test_a_run_of_another_study_under_the_key_is_not_tabulated(pair):
    store, (one, _) = pair
    foreign = Point("dct", "seed 0", make_config(data={"records": 80}))
    store.run_folder(one).rename(store.run_folder(foreign))
    with pytest.raises(RunError, match=r"data\.records should be 80 and is 60"):
        store.read(foreign)


@pytest.mark.parametrize("sealed", [False, True], ids=["receipt alone", "all digests made anew"])
def test_a_score_that_was_edited_is_not_tabulated(pair, sealed):
    store, (one, _) = pair
    run = store.run_folder(one)
    statement = read_statement(run)
    statement["predicate"]["metrics"]["test"]["macro_auc"] = 0.99
    if sealed:
        metrics = canonical_json(statement["predicate"]["metrics"]) + b"\n"
        (run / "metrics.json").write_bytes(metrics)
        seal(run, statement)
    else:
        write_statement(run, statement)
    with pytest.raises(RunError, match="does not match its receipt"):
        store.read(one)


def test_runs_of_different_records_under_one_name_are_not_compared(pair):
    store, points = pair
    first, second = (store.read(point) for point in points)
    assert first.data == second.data
    check_same_data([first, second])
    with pytest.raises(StudyError, match="were trained on different records of simulated"):
        check_same_data([first, replace(second, data="sha256:1")])
    failed = replace(second, data=None, metrics=None)
    check_same_data([first, failed, failed])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 5000, "is nested 5,000 deep"),
        (b"{}", "is not the record of a failed run"),
        (b'{"point": "", "config": {}, "error": 5}', "is not the record of a failed run"),
        (b'{"point": "", "config": {}, "error": "no"}', "a run of another configuration"),
        (b" " * (1 << 21), "at most 1,048,576 are read"),
    ],
)
def test_a_record_of_a_failure_that_is_none_is_refused(tmp_path, content, reason):
    store, point = Store(tmp_path), make_tiny_grid().points[0]
    store.record_failure(point, "it broke")
    assert store.read(point).error == "it broke"
    (tmp_path / "failed" / f"{point.key}.json").write_bytes(content)
    with pytest.raises(StudyError, match=reason):
        store.read(point)


def test_a_run_that_another_process_holds_is_left_alone(made):
    store, point = made
    code = (
        "import sys; from pathlib import Path; from seedless.studies.engine.store import Store;"
        "from tests.studies.tiny_grids import make_tiny_grid;"
        "store = Store(Path(sys.argv[1]));"
        "claim = store.claim(make_tiny_grid().points[0]); print(claim.__enter__())"
    )
    command = [sys.executable, "-c", code, str(store.folder)]
    with store.claim(point) as mine:
        assert mine
        assert not Worker(store).execute(point)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
    with store.claim(point) as mine:
        assert mine


def test_a_failure_is_kept_counted_and_tried_again_on_request(tmp_path):
    store = Store(tmp_path)
    point = Point("dct", "seed 0", make_config(train={"rate": 1e30}))
    assert store.state(point) == "waiting"
    assert Worker(store).execute(point)
    assert store.state(point) == "failed"
    outcome = store.read(point)
    assert not outcome.ok
    assert not outcome.converged
    assert outcome.error
    file = next((tmp_path / "failed").iterdir())
    first = file.stat().st_mtime_ns
    assert Worker(store).execute(point)
    assert file.stat().st_mtime_ns == first
    assert Worker(store).execute(point, again=True)
    assert file.stat().st_mtime_ns > first
    results = read_results(make_grid("one", ("init.basis",), [point]), store, OPTIONS)
    assert results.count("dct") == (1, 1, 0)
    assert results.scores("dct") == {}


def test_a_run_that_was_never_made_has_no_outcome(tmp_path):
    with pytest.raises(StudyError, match="is not finished"):
        Store(tmp_path).read(make_tiny_grid().points[0])
