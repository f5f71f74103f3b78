"""A second nursery, whose environment differs in what must not matter."""

import pytest

from tests.forks import Nursery


@pytest.fixture(scope="session")
def other_nursery(tmp_path_factory):
    """Runs commands with another hash seed and another default number of threads."""
    made = Nursery(tmp_path_factory.mktemp("other"), PYTHONHASHSEED=7, OMP_NUM_THREADS=2)
    yield made
    made.close()
