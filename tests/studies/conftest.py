"""What tests of studies share: flags put back, and one store with every study's smallest runs."""

import os

import pytest
from filelock import FileLock

from seedless.studies.catalog import STUDIES, open_study
from seedless.studies.engine.local_workers import run_local
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.store import Store
from tests.tiny import flags_restored

SMOKE = StudyOptions(scale="smoke", data="simulated", device="cpu")


@pytest.fixture(autouse=True)
def _restore():
    """Studies set threads and flags in the process that executes or opens runs."""
    with flags_restored():
        yield


@pytest.fixture(scope="session")
def smoke_store(tmp_path_factory):
    """The folder of a store that holds every run of every study at the scale smoke.

    Test processes share it: whoever comes first makes the runs.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "smoke-store"
    store = Store(folder)
    points = {p.key: p for name in STUDIES for p in open_study(name).make(SMOKE).points}
    with FileLock(folder.with_suffix(".lock")):
        missing = [p for p in points.values() if store.state(p) in ("begun", "waiting")]
        if missing:
            run_local(store, missing, runs_per_device=2)
    return folder
