"""Flags that a run sets in this process do not outlive the test."""

import pytest
import torch

from tests.tiny import flags_restored


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        torch.set_num_threads(1)
        yield
