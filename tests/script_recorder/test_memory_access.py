"""Who can change a tensor without an operation: addresses that are taken, threads that start."""

import threading

import pytest
import torch

from seedless.script_recorder import memory_access
from seedless.script_recorder.script_ops import ScriptOps


@pytest.fixture
def record(monkeypatch):
    """Return a function that records a run; torch's methods are put back afterwards."""
    for name in memory_access.ADDRESS_CALLS:
        # Tensor inherits them, so that deleting what was set puts them back.
        assert name not in vars(torch.Tensor)
    lines = []
    ops = ScriptOps(lines.append, lambda: False)
    memory_access.watch_addresses(ops)

    def record(run):
        ops.start()
        try:
            run()
        finally:
            ops.stop()
        return lines

    yield record
    for name in memory_access.ADDRESS_CALLS:
        delattr(torch.Tensor, name)


@pytest.mark.parametrize("name", memory_access.ADDRESS_CALLS)
def test_a_tensor_whose_address_was_taken_has_the_line(record, name):
    def run():
        total = torch.zeros(3)
        getattr(total, name)()
        total + 1

    line = record(run)[-1]
    assert line["sources"] == [f"memory whose address {name}() gave away"]
    assert "test_memory_access.py:" in line["origins"][0]


def test_memory_that_others_can_write_to_is_not_called_uninitialized(record):
    def run():
        out = torch.empty(3)
        out.numpy()[:] = 1
        out + 1

    assert record(run)[-1]["sources"] == ["memory whose address numpy() gave away"]


def test_torch_itself_gives_no_address_away(record):
    line = record(lambda: repr(torch.zeros(3)) and torch.zeros(3) + 1)[-1]
    assert line["sources"] == [""]


def test_threads_of_the_script_are_seen_and_those_of_packages_are_not(monkeypatch):
    seen = []
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    memory_access.watch_threads(seen.append)
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert [line.rpartition("/")[2].partition(":")[0] for line in seen] == ["test_memory_access.py"]
    monkeypatch.setattr(memory_access, "is_installed", lambda path: True)
    threading.Thread(target=int).start()
    assert len(seen) == 1
