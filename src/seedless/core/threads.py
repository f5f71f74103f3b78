"""Work on rows of arrays block by block, several blocks at a time, in threads.

Blocks do not depend on each other, so the result does not depend on the number of threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

MAX_BLOCK_VALUES = 1 << 22  # numbers of a block: 32 MiB where they are widened to 64 bits
MAX_THREADS = 8  # only numpy and hashing release the interpreter's lock, so more do not help


def count_threads() -> int:
    """Return how many threads to use: the available cores, at most 8."""
    return min(MAX_THREADS, count_usable_cores())


def count_usable_cores() -> int:
    """Return the number of cores this process may run on."""
    return len(list_usable_cores())


def list_usable_cores() -> list[int]:
    """Return the numbers of the cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity is not None else list(range(os.cpu_count() or 1))


def limit_block(most: int, values: int) -> int:
    """Return how many samples of ``values`` numbers each a block holds: ``most``, fewer if large.

    >>> limit_block(256, 28 * 28), limit_block(256, 3 * 224 * 224)
    (256, 27)
    """
    return max(1, min(most, MAX_BLOCK_VALUES // max(1, values)))


def run_in_blocks(work: Callable[[slice], None], count: int, size: int) -> None:
    """Call ``work`` with a slice of ``size`` rows for every block of ``count`` rows.

    An error ends the work; of several errors, that of the first block is raised.
    """
    blocks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    if len(blocks) < 2 or count_threads() < 2:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(min(count_threads(), len(blocks))) as pool:
        futures = [pool.submit(work, block) for block in blocks]
        try:
            for future in futures:
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)
