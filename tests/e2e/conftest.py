"""Two nurseries whose environments differ in what must not matter: hash seed and thread default."""

import pytest

from tests.e2e.forks import Nursery


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """Runs commands quickly, each in a process of its own."""
    made = Nursery(tmp_path_factory.mktemp("nursery"), PYTHONHASHSEED=1, OMP_NUM_THREADS=1)
    yield made
    made.close()


@pytest.fixture(scope="session")
def other_nursery(tmp_path_factory):
    """The same with another hash seed and another default number of threads."""
    made = Nursery(tmp_path_factory.mktemp("other"), PYTHONHASHSEED=7, OMP_NUM_THREADS=2)
    yield made
    made.close()
