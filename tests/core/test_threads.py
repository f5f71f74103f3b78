"""Blocks of work: every row once, whatever the number of threads, and errors come out."""

import numpy as np
import pytest

from seedless.core import threads as module
from seedless.core.digests import digest_samples
from seedless.core.threads import run_in_blocks
from seedless.data.simulators.ecg import simulate_ecg


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_every_row_is_worked_on_once(monkeypatch, threads, count):
    monkeypatch.setattr(module, "count_threads", lambda: threads)
    rows = np.zeros(count, int)

    def add(block):
        assert 1 <= block.stop - block.start <= 64
        rows[block] += 1

    run_in_blocks(add, count, 64)
    assert (rows == 1).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_blocks_error_is_raised(monkeypatch, threads):
    monkeypatch.setattr(module, "count_threads", lambda: threads)

    def fail(block):
        if block.start >= 20:
            raise ValueError(block.start)

    with pytest.raises(ValueError, match=r"^20$"):
        run_in_blocks(fail, 100, 10)


def test_threads_do_not_show_in_records_and_digests(monkeypatch):
    found = []
    for threads in (1, 4):
        monkeypatch.setattr(module, "count_threads", lambda threads=threads: threads)
        data = simulate_ecg(200)
        found.append((data.X.tobytes(), digest_samples(data.X).tobytes(), data.digest))
    assert found[0] == found[1]
