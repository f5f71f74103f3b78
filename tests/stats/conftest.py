"""Where the published results of a paper lie."""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="session")
def evidence():
    """The folder of published result files, or a skip that says where it was looked for."""
    folder = Path(os.environ.get("SEEDLESS_EVIDENCE", ROOT.parent / "shared" / "evidence"))
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no published results at {folder}; set SEEDLESS_EVIDENCE")
    return folder
