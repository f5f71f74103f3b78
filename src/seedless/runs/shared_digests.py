"""The content digests of a dataset that the processes of a group compute together.

Each process reads and hashes every N-th sample. To find data that differ between machines at the
start, each also reads a few samples of the others; the rest is compared when it is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.core.sample_digests import DIGEST_BYTES, READ_TWICE, count_samples, digest_dataset
from seedless.core.sample_index import SampleIndex
from seedless.train.process_group import TrainingGroup, exchange_bytes, fail_together


@dataclass(frozen=True)
class Selection:
    """Some samples of a dataset, as a dataset."""

    dataset: Any
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: SampleIndex) -> Any:
        return self.dataset[SampleIndex(self.rows[place], key=place.key, epoch=place.epoch)]


def digest_together(
    dataset: Any,
    group: TrainingGroup | None,
    *,
    cache: Path | None = None,
    workers: int = 0,
    shown: bool = False,
) -> NDArray[np.uint8]:
    """Return the digest of each sample (n, 32); the arguments are those of `digest_dataset`.

    With a cache, every process uses it by itself.
    """
    if group is None or cache is not None:
        return digest_dataset(dataset, cache=cache, workers=workers, shown=shown)
    # [Step 1] Each process hashes its share.
    count = count_samples(dataset)
    with fail_together(group):
        digests = np.empty((count, DIGEST_BYTES), dtype=np.uint8)
        own = range(group.rank, count, group.size)
        share = digests[:0]
        if len(own):
            share = digest_dataset(Selection(dataset, own), workers=workers, shown=shown)
    # [Step 2] Put the shares together.
    for rank, content in enumerate(exchange_bytes(group.messages, share.tobytes())):
        digests[rank :: group.size] = np.frombuffer(content, np.uint8).reshape(-1, DIGEST_BYTES)
    # [Step 3] Compare a few samples as all processes read them.
    with fail_together(group):
        spread = np.unique(np.linspace(0, count - 1, READ_TWICE).astype(np.int64)).tolist()
        here = digest_dataset(Selection(dataset, spread), shown=False)
    found = exchange_bytes(group.messages, here.tobytes())
    for rank, content in enumerate(found):
        if content != found[0]:
            raise DataError(
                f"expected the same data in all {group.size} processes; process {rank} has other "
                f"samples than process 0 ({len(spread)} of {count:,} were compared). Give every "
                "process the same data"
            )
    return digests
