"""What all tests share: where real data lies, and a clean process to run commands in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.forks import Nursery

# The same examples on every run, as befits this project; HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="no CUDA device here")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data files, or a skip that says where it was looked for."""
    folder = Path(os.environ.get("SEEDLESS_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set SEEDLESS_TEST_DATA")
    return folder


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """Runs commands quickly, each in a process of its own."""
    made = Nursery(tmp_path_factory.mktemp("nursery"), PYTHONHASHSEED=1, OMP_NUM_THREADS=1)
    yield made
    made.close()


@pytest.fixture
def run_seedless(nursery):
    """Run a command in a process forked for it; return exit code, standard output and error."""

    def run(*arguments, check=True):
        return nursery.run(*arguments, code=0 if check else None)

    return run


@pytest.fixture(scope="session")
def run_python():
    """Run Python in a process of its own with a changed environment; return what it printed."""

    def run(*arguments, check=True, **variables):
        environment = {**os.environ, **{key: str(value) for key, value in variables.items()}}
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=300,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    return run
