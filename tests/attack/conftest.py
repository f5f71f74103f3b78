"""One server for each test process, and victims that all test processes share."""

import os

import pytest

from tests.attack.runner import Server
from tests.attack.victims import make_victims_once


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("attack-server"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def victims(tmp_path_factory, server):
    """The folder of honest runs, bundles and stores; nobody writes to it."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return make_victims_once(folder / "attack-victims", server)
