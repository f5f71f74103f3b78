"""Ids for samples that have none: made from the content, so that storage order does not matter."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest_samples
from seedless.core.threads import limit_block

_BLOCK = 4096  # samples widened to 64 bits at a time


def digest_in_blocks(samples: NDArray[Any]) -> NDArray[np.uint8]:
    """Return `digest_samples` of (n, ...) as (n, 32), converting a block of samples at a time."""
    out = np.empty((len(samples), 32), dtype=np.uint8)
    block = limit_block(_BLOCK, samples[0].size) if len(samples) else _BLOCK
    for start in range(0, len(samples), block):
        out[start : start + block] = digest_samples(samples[start : start + block])
    return out


def name_by_content(
    digests: NDArray[np.uint8], labels: NDArray[np.uint8], prefix: str = ""
) -> NDArray[np.str_]:
    """Return ids such as "train/0f3a5c...": the prefix and 16 hexadecimal digits of the digest.

    Equal samples get a number, "-2" and so on, in the order of their labels. If the labels are
    equal too, the samples are interchangeable.
    """
    ids = [f"{prefix}{row[:8].tobytes().hex()}" for row in digests]
    seen: dict[str, int] = {}
    for row in sorted(range(len(ids)), key=lambda row: (ids[row], labels[row].tobytes())):
        name = ids[row]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            ids[row] = f"{name}-{seen[name]}"
    return np.array(ids)
