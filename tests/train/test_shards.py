"""How a batch is shared: each sample once, in order, evenly, and never one to a process."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedless.train.shards import share_samples, take_own

sizes, groups = st.integers(2, 300), st.integers(1, 40)


@given(sizes, groups)
def test_every_sample_goes_to_one_process_and_none_gets_a_single_one(samples, processes):
    counts = share_samples(samples, processes)
    assert len(counts) == processes
    assert sum(counts) == samples
    assert 1 not in counts
    rows = np.arange(samples)
    parts = [take_own(rows, rank, processes) for rank in range(processes)]
    assert np.concatenate(parts).tolist() == rows.tolist()
    assert [*map(len, parts)] == counts


@given(sizes, groups)
def test_those_that_work_have_as_much_to_do(samples, processes):
    counts = [count for count in share_samples(samples, processes) if count]
    assert max(counts) - min(counts) <= 1
    assert len(counts) == min(processes, samples // 2)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_batch_of_one_sample_is_not_shared(rank):
    assert share_samples(1, 3) == [1, 1, 1]
    assert take_own(np.array([7]), rank, 3).tolist() == [7]
