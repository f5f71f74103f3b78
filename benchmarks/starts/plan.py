"""Which trainings choose the default start, and in which order they are made.

The protocol on docs/results/protocol.md is written from these values, before the first training.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.starts.images import BREAST, ECG

OWN = "own"  # the library's own start, from torch's generator with a seed
CANDIDATES = ("canonical_kaiming", "scrambled", "dct")
STARTS = (OWN, *CANDIDATES)
NETWORKS = (
    *("resnet18", "seresnet18", "resnest14d", "regnety_002", "repvgg_a0", "hrnet_w18_small"),
    *("efficientnet_b0", "mobilenetv3_small_050", "mobilenetv4_conv_small", "ghostnet_050"),
    *("convnext_atto", "pvt_v2_b0"),
)
EPOCHS = {BREAST: 25, ECG: 15}
REPLICATES = 5
PIXELS = 64  # a side of BreastMNIST's images, enlarged
MARGIN = 0.015  # of the mean AUC, for "costs nothing"
ALPHA = 0.05


@dataclass(frozen=True)
class Training:
    """One training: of a network, from a start, on a data set, with one of the replicates."""

    network: str
    start: str
    data: str
    replicate: int
    epochs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the settings for JSON."""
        return asdict(self)


def list_trainings(
    networks: tuple[str, ...] = NETWORKS,
    starts: tuple[str, ...] = STARTS,
    replicates: int = REPLICATES,
    epochs: dict[str, int] | None = None,
) -> list[Training]:
    """Return all trainings, the first replicates of every network, start and data set first."""
    epochs = EPOCHS if epochs is None else epochs
    return [
        Training(network, start, data, replicate, count)
        for replicate in range(replicates)
        for network in networks
        for data, count in epochs.items()
        for start in starts
    ]
