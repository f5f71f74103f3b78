"""A dataset by name: which reader, which of the settings it takes, and the cache before it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seedless.core.cache_location import find_cache_folder
from seedless.core.config import DataConfig
from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.core.version import __version__
from seedless.data.cache import entry_folder, open_cached
from seedless.data.catalog import CATALOG
from seedless.data.leads import lead_set
from seedless.data.readers.arrays import read_arrays
from seedless.data.readers.challenge import read_challenge
from seedless.data.readers.cifar100 import read_cifar100
from seedless.data.readers.cpsc2018 import read_cpsc2018
from seedless.data.readers.medmnist import read_medmnist
from seedless.data.readers.ptbxl import list_sources, read_ptbxl
from seedless.data.readers.rhythms import read_rhythms
from seedless.data.simulators.ecg import simulate_ecg
from seedless.data.simulators.images import simulate_images

SETTINGS = (
    "preset",
    "records",
    "task",
    "leads",
    "lead_map",
    "fs",
    "short",
    "skip",
    "size",
    "channels",
    "classes",
)


@dataclass(frozen=True)
class Reader:
    """How a dataset is read, and which settings it has.

    ``fixed`` are arguments the name decides. ``sources`` lists what a cached copy depends on; None
    for what is quicker read than cached.
    """

    read: Callable[..., Dataset]
    takes: tuple[str, ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()
    computed: bool = False
    sources: Callable[..., list[Path]] | None = None


def _simulate(preset: str | None = None, count: int | None = None, leads: str = "12") -> Dataset:
    """Simulate a preset or the first ``count`` records; 1,500 records where neither is given."""
    chosen = "small" if preset is None and count is None else preset
    return simulate_ecg(count, leads=leads, preset=chosen)


def _whole_folder(folder: Path, **_: Any) -> list[Path]:
    return [folder]


def _ptbxl_sources(folder: Path, *, fs: int = 100, **_: Any) -> list[Path]:
    return list_sources(folder, fs)


def _medmnist(name: str) -> Reader:
    return Reader(read_medmnist, fixed=(("name", name),))


_STRIP = ("fs", "leads", "short")
_SKIPPING = (*_STRIP, "skip")
READERS: dict[str, Reader] = {
    "simulated": Reader(_simulate, ("preset", "records", "leads"), computed=True),
    "simulated-images": Reader(
        simulate_images, ("records", "task", "size", "channels", "classes"), computed=True
    ),
    "ptb-xl": Reader(read_ptbxl, ("task", *_STRIP), sources=_ptbxl_sources),
    "afdb": Reader(
        read_rhythms,
        ("fs", "leads"),
        (("lead_map", CATALOG["afdb"].lead_map), ("rate", CATALOG["afdb"].fs), ("name", "afdb")),
        sources=_whole_folder,
    ),
    "cpsc2018": Reader(read_challenge, _SKIPPING, (("source", "cpsc2018"),), sources=_whole_folder),
    "cpsc2018-original": Reader(read_cpsc2018, _SKIPPING, sources=_whole_folder),
    "chapman": Reader(read_challenge, _SKIPPING, (("source", "chapman"),), sources=_whole_folder),
    "challenge": Reader(read_challenge, _SKIPPING, (("source", "any"),), sources=_whole_folder),
    "rhythms": Reader(read_rhythms, ("fs", "leads", "lead_map"), sources=_whole_folder),
    "cifar-100": Reader(read_cifar100),
    **{name: _medmnist(name) for name in CATALOG if name.endswith("mnist")},
}


def load(config: DataConfig) -> Dataset:
    """Return the dataset a configuration names, from the cache where there is one."""
    data = _read(config)
    if config.test_fold is None and config.val_fold is None:
        return data
    return choose_folds(data, config.test_fold or 10, config.val_fold or 9)


def choose_folds(data: Dataset, test: int, val: int) -> Dataset:
    """Return the dataset with two of its ten folds held out, and the others to train on."""
    folds = sorted(fold for split in data.protocol.values() for fold in split)
    if folds != list(range(1, 11)):
        raise DataError(
            f"{data.name} has no ten folds to choose from; leave data.test_fold and data.val_fold "
            "out"
        )
    if test == val:
        raise DataError(f"data.test_fold and data.val_fold are both {test}: choose two folds")
    rest = tuple(fold for fold in folds if fold not in (test, val))
    return replace(data, protocol={"train": rest, "val": (val,), "test": (test,)})


def keep_leads(data: Dataset, wanted: tuple[str, ...]) -> Dataset:
    """Return the dataset with these leads alone, found by name and in this order."""
    missing = [name for name in wanted if name not in (data.leads or ())]
    if data.leads is None or missing:
        found = "names no leads" if data.leads is None else f"lacks {', '.join(missing)}"
        raise DataError(f"{data.name} {found}: leave data.leads out, or name them in its `leads`")
    if data.leads == wanted:
        return data
    samples = np.ascontiguousarray(data.X[:, [data.leads.index(name) for name in wanted]])
    return replace(data, X=samples, leads=wanted, content=None)


def _read(config: DataConfig) -> Dataset:
    name, path = config.name, config.path
    if name.endswith(".npz"):
        if path is not None:
            raise DataError(f"data.name is the file {name}; leave data.path out")
        given = _refuse_settings(config, name, ("leads",))
        data = read_arrays(Path(name))
        return keep_leads(data, lead_set(given["leads"])) if given else data
    if name in CATALOG and CATALOG[name].kind == "noise":
        raise DataError(f"{name} is noise, without records or classes: seedless data check {name}")
    reader = choose("dataset", name, READERS)
    options = {**_refuse_settings(config, name, reader.takes), **dict(reader.fixed)}
    if "records" in options:
        options["count"] = options.pop("records")
    if reader.computed:
        if path is not None:
            raise DataError(f"{name} is computed; leave the path out")
        return reader.read(**options)
    place = Path(path) if path is not None else find_download(name)
    if reader.sources is None or not config.cache:
        return reader.read(place, **options)
    sources = reader.sources(place, **options)
    key = _cache_key(name, reader.read, options)
    return open_cached(
        entry_folder(name, key, sources),
        key,
        sources,
        lambda: reader.read(place, **options),
        verify=config.verify,
    )


def find_download(name: str) -> Path:
    """Return where `seedless data fetch` put a dataset, or say how to get it."""
    entry = CATALOG.get(name)
    place = find_cache_folder() / "downloads" / name / (entry.root if entry is not None else "")
    if entry is None or not place.exists():
        raise DataError(
            f"{name} needs the folder or file it lies in: give its path, or get it with `seedless "
            f"data fetch {name}`; the dataset 'simulated' needs none"
            if entry is not None
            else f"{name} needs the folder its records lie in: give its path"
        )
    return place


def refuse_absent(config: DataConfig) -> None:
    """Refuse data that are not there: an unknown name, or a place with nothing in it.

    Nothing is read, so what is there may still be refused later.
    """
    if config.name.endswith(".npz"):
        place = Path(config.name)
    else:
        reader = choose("dataset", config.name, READERS)
        if reader.computed:
            return
        place = find_download(config.name) if config.path is None else Path(config.path)
    if not place.exists():
        raise DataError(f"{place}: there is no such file or folder; {config.name} is read from it")


def _cache_key(name: str, read: Callable[..., Dataset], options: dict[str, Any]) -> dict[str, Any]:
    """Return all that decides what a reader returns: its settings, defaults too, and its version.

    A default spelled out is the same entry, and a new release reads its sources again.
    """
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(read).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }
    settings = {**defaults, **options}
    plain = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.items()
    }
    return {"reader": name, "release": __version__, **plain}


def _refuse_settings(config: DataConfig, name: str, takes: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings given, or refuse those the dataset does not have."""
    given = {key: value for key in SETTINGS if (value := getattr(config, key)) is not None}
    for key in given:
        if key not in takes:
            has = f"it has {', '.join(takes)}" if takes else "it has none of these settings"
            raise DataError(f"{name} has no setting data.{key}; {has}")
    return given
