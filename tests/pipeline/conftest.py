"""Flags that a run sets in this process do not outlive the test."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _leave_no_flags():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
