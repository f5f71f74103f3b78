"""Who is missing when an exchange fails: named from what the others wrote into the store."""

import pytest
import torch.distributed as dist

from seedless.core.errors import DataError, LostProcessError
from seedless.runs import lost_processes
from seedless.train.process_group import TrainingGroup

BROKEN = "[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"


@pytest.fixture(autouse=True)
def _wait_shortly(monkeypatch):
    monkeypatch.setattr(lost_processes, "WAIT_SECONDS", 0.3)
    monkeypatch.setattr(lost_processes, "_LINGER_SECONDS", 0.0)


def make_group(store, rank=0, size=3):
    return TrainingGroup(rank, size, None, None, store, ("cpu",) * size, 1)


def lose(store, rank=0, error=BROKEN):
    """Return the error of a process whose exchange fails."""
    with (
        pytest.raises(LostProcessError) as caught,
        lost_processes.report_lost(make_group(store, rank)),
    ):
        raise RuntimeError(error)
    return caught.value


def test_a_process_that_says_nothing_is_missing_and_the_first_survivor_reports_it():
    store = dist.HashStore()
    store.set("alive/2", "")
    found = lose(store)
    assert "process 1 of 3 ended or does not answer" in str(found)
    assert found.reports_it
    assert not lose(store, rank=2).reports_it  # process 0 wrote that it is alive


def test_several_missing_processes_are_all_named():
    assert "process 1 and 2 of 3 ended" in str(lose(dist.HashStore()))


def test_a_process_that_failed_says_why():
    store = dist.HashStore()
    failing = lost_processes.report_lost(make_group(store, rank=1))
    with pytest.raises(DataError), failing:
        raise DataError("sample 7 cannot be read")
    store.set("alive/2", "")
    assert "process 1 of 3 failed: sample 7 cannot be read" in str(lose(store))


def test_all_alive_means_that_one_is_stuck():
    store = dist.HashStore()
    for rank in range(3):
        store.set(f"alive/{rank}", "")
    assert "all 3 still run" in str(lose(store, error="gloo: Timed out waiting 5000ms for recv"))


def test_a_store_that_is_gone_is_reported():
    class Gone:
        def set(self, key, value):
            raise dist.DistNetworkError("connection closed")

    found = lose(Gone(), rank=2)
    assert "the store at which they met is gone" in str(found)


def test_an_error_of_the_model_is_not_taken_for_a_lost_process():
    store = dist.HashStore()
    with pytest.raises(RuntimeError, match="shapes") as caught:  # noqa: SIM117
        with lost_processes.report_lost(make_group(store)):
            raise RuntimeError("shapes cannot be multiplied")
    assert not isinstance(caught.value, LostProcessError)
    assert store.get("failed/0") == b"shapes cannot be multiplied"
