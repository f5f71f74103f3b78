"""How the samples of a batch are shared among the processes of a group.

The bits do not depend on it: portable arithmetic gives every sum over the whole batch one value.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from seedless.train.training_problem import TrainingProblem

Rows = TypeVar("Rows", Tensor, NDArray[np.int64])


def share_samples(samples: int, processes: int) -> list[int]:
    """Return how many consecutive samples of a batch each process takes: none, or at least two.

    A single sample would let broadcasting leave sums out. A batch of one sample is not shared:
    every process computes it.

    >>> share_samples(13, 4), share_samples(5, 4), share_samples(1, 2)
    ([4, 3, 3, 3], [3, 2, 0, 0], [1, 1])
    """
    if samples == 1:
        return [1] * processes
    working = min(processes, samples // 2)
    each, more = divmod(samples, working)
    return [each + (rank < more) for rank in range(working)] + [0] * (processes - working)


def take_own(rows: Rows, rank: int, processes: int) -> Rows:
    """Return the rows (b,) of a batch (B,) that the process with this number takes."""
    if len(rows) == 1:
        return rows
    counts = share_samples(len(rows), processes)
    begin = sum(counts[:rank])
    return rows[begin : begin + counts[rank]]


def list_readings(
    problem: TrainingProblem, batches: Sequence[NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """Return the parts in which this process reads batches.

    They are whole batches or micro-batches; in a group, this process's part of each batch.
    """
    group, size = problem.group, problem.config.train.microbatch
    if group is not None:
        parts = [take_own(rows, group.rank, group.size) for rows in batches]
        return [rows for rows in parts if len(rows)]
    if size is None:
        return list(batches)
    return [rows[start : start + size] for rows in batches for start in range(0, len(rows), size)]
