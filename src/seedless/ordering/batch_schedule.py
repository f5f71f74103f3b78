"""An epoch's batches, with a digest of the sequence of samples."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest_value
from seedless.ordering.samples import Positions, Samples, sample_identities


@dataclass(frozen=True, eq=False)
class Schedule:
    """One epoch's batches.

    Attributes:
        epoch: the epoch, offset included.
        batch_size: samples in every batch but the last, which may be shorter.
        batches: row indices into the data, int64.
        digest: "sha256:..." over epoch, batch size and the sequence of contents and labels; it does
            not depend on where records are stored.
    """

    epoch: int
    batch_size: int
    batches: tuple[NDArray[np.int64], ...]
    digest: str


def make_schedule(samples: Samples, positions: Positions, epoch: int, batch_size: int) -> Schedule:
    """Return the batches of a permutation.

    The digest is that of {"batch_size", "epoch", "label_bytes", "samples"}, where "samples" is the
    SHA-256 over each sample's 32-byte content digest and label bytes, in the epoch's order.
    """
    identity = samples.compute_once(sample_identities)
    sequence = hashlib.sha256(identity[positions].tobytes()).hexdigest()
    rows = samples.rows[positions]
    return Schedule(
        epoch=epoch,
        batch_size=batch_size,
        batches=tuple(np.split(rows, range(batch_size, len(rows), batch_size))),
        digest=digest_value(
            {
                "batch_size": batch_size,
                "epoch": epoch,
                "label_bytes": identity.shape[1] - samples.digests.shape[1],
                "samples": sequence,
            }
        ),
    )
