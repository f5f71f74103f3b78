"""Which function reads which dataset, and which settings of ``[data]`` it accepts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seedless.core.dataset import TEN_FOLDS, TEST_ONLY, THREE_SPLITS, Dataset
from seedless.data.catalog import CATALOG
from seedless.data.readers.afdb import read_rhythms
from seedless.data.readers.cifar100 import read_cifar100
from seedless.data.readers.cpsc2018_original import read_cpsc2018_original
from seedless.data.readers.medmnist import SETS, read_medmnist
from seedless.data.readers.physionet_challenge import read_challenge
from seedless.data.readers.ptbxl import list_sources, read_ptbxl
from seedless.data.simulators.ecg import simulate_ecg
from seedless.data.simulators.images import simulate_images


@dataclass(frozen=True)
class Reader:
    """How one dataset is read.

    Attributes:
        read: the function; it gets the dataset's folder or file first, unless ``computed``.
        protocol: the splits it gives, whatever the files say.
        settings: which keys of ``[data]`` it accepts, as keyword arguments.
        fixed: further arguments that the dataset's name decides.
        computed: whether the data are simulated, so that there is no folder.
        sources: lists the files and folders that a cached copy depends on; None for a dataset that
            is read faster than a cached copy.
    """

    read: Callable[..., Dataset]
    protocol: Mapping[str, tuple[int, ...]]
    settings: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    computed: bool = False
    sources: Callable[..., list[Path]] | None = None


def _simulate(preset: str | None = None, count: int | None = None, leads: str = "12") -> Dataset:
    """Simulate a preset or the first ``count`` records; 1,500 records if neither is given."""
    chosen = "small" if preset is None and count is None else preset
    return simulate_ecg(count, leads=leads, preset=chosen)


def _list_folder(folder: Path, **_: Any) -> list[Path]:
    return [folder]


def _list_ptbxl(folder: Path, *, fs: int = 100, **_: Any) -> list[Path]:
    return list_sources(folder, fs)


def _read_challenge(source: str) -> Reader:
    settings = ("fs", "leads", "short", "skip")
    return Reader(read_challenge, TEST_ONLY, settings, {"source": source}, sources=_list_folder)


_AFDB = {"name": "afdb", "lead_map": CATALOG["afdb"].lead_map, "rate": CATALOG["afdb"].fs}

READERS: dict[str, Reader] = {
    "simulated": Reader(_simulate, TEN_FOLDS, ("preset", "records", "leads"), computed=True),
    "simulated-images": Reader(
        simulate_images,
        THREE_SPLITS,
        ("records", "task", "size", "channels", "classes"),
        computed=True,
    ),
    "ptb-xl": Reader(read_ptbxl, TEN_FOLDS, ("task", "fs", "leads", "short"), sources=_list_ptbxl),
    "afdb": Reader(read_rhythms, TEST_ONLY, ("fs", "leads"), _AFDB, sources=_list_folder),
    "cpsc2018": _read_challenge("cpsc2018"),
    "cpsc2018-original": Reader(
        read_cpsc2018_original, TEST_ONLY, ("fs", "leads", "short", "skip"), sources=_list_folder
    ),
    "chapman": _read_challenge("chapman"),
    "challenge": _read_challenge("any"),
    "rhythms": Reader(read_rhythms, TEST_ONLY, ("fs", "leads", "lead_map"), sources=_list_folder),
    "cifar-100": Reader(read_cifar100, THREE_SPLITS),
    **{name: Reader(read_medmnist, THREE_SPLITS, ("size",), {"name": name}) for name in SETS},
}
SETTINGS = sorted({key for reader in READERS.values() for key in reader.settings})
