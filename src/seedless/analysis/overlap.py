"""Whether the records a run is scored on are among those it was trained on."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from seedless.core.config import DataConfig
from seedless.core.digests import digest_samples
from seedless.core.errors import SeedlessError
from seedless.data.loading import load


def count_trained(data: DataConfig, digest: str, samples: NDArray[Any]) -> int | None:
    """Return how many samples (n, ...) have the content of one of a run's training records.

    ``data`` and ``digest`` are the run's own. None where those data cannot be read here as they
    were: then nothing is known. A record resampled or filtered since is another record.
    """
    try:
        own = load(data)
    except SeedlessError:
        return None
    if own.digest != digest:
        return None
    trained = {row.tobytes() for row in own.digests[own.rows("train")]}
    return sum(row.tobytes() in trained for row in digest_samples(samples))
