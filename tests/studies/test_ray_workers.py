"""The same grid on a Ray cluster of this machine, and with a worker killed half way."""

import os
import signal
import sys
from pathlib import Path

import pytest

from seedless.studies.engine.local_workers import run_local
from seedless.studies.engine.ray_workers import run_ray
from seedless.studies.engine.store import Store
from tests.studies.tiny_grids import make_tiny_grid

ray = pytest.importorskip("ray", reason="Ray is not installed")

# Ray's own: it leaves sockets and log files to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
EPOCHS = 12  # long enough to be caught at work


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The weights of every run as the local engine makes them."""
    grid, store = make_tiny_grid(EPOCHS), Store(tmp_path_factory.mktemp("local"))
    run_local(store, grid.points)
    return read_weights(store, grid)


def read_weights(store, grid):
    return {point.label: store.read(point).weights for point in grid.points}


@pytest.fixture
def cluster():
    """A cluster of two workers."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 * 1024 * 1024,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_a_cluster_ends_in_the_bits_of_one_machine(tmp_path, expected):
    grid, store = make_tiny_grid(EPOCHS), Store(tmp_path)
    run_ray(store, grid.points)
    assert None not in expected.values()
    assert read_weights(store, grid) == expected
    assert ray.is_initialized()  # it was not ours to shut down


def test_a_worker_killed_half_way_leaves_its_run_to_another(tmp_path, expected):
    grid, store = make_tiny_grid(EPOCHS), Store(tmp_path)
    killed = []

    def kill_once():
        begun = any(store.state(point) == "begun" for point in grid.points)
        workers = find_workers(os.getpid()) if begun and not killed else []
        for pid in workers[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    run_ray(store, grid.points, watch=kill_once)
    assert len(killed) == 1
    assert not Path(f"/proc/{killed[0]}").exists()
    assert read_weights(store, grid) == expected
    assert not list((tmp_path / "failed").iterdir())
    assert not ray.is_initialized()


def find_workers(ancestor):
    """Return the processes below one that are at a run, by the title Ray gives them."""
    parents, titles = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text()
                titles[int(folder.name)] = (folder / "cmdline").read_text(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            parents[int(folder.name)] = int(status.rpartition(")")[2].split()[1])
    found = []
    for pid, title in titles.items():
        above = parents.get(pid)
        while above and above != ancestor:
            above = parents.get(above)
        if above == ancestor and title.startswith("ray::execute_point"):
            found.append(pid)
    return found
