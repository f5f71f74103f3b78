"""Load a dataset by its name: find its files, check its settings, use a cached copy."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.cache_location import find_cache_folder
from seedless.core.config import DataConfig
from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.core.version import __version__
from seedless.data.cache import find_entry_folder, open_cached
from seedless.data.catalog import CATALOG, find_entry
from seedless.data.leads import get_lead_set
from seedless.data.readers.arrays import choose_protocol, read_arrays
from seedless.data.readers.medmnist import is_medmnist, read_medmnist
from seedless.data.readers.npz_files import list_npz
from seedless.data.readers.registry import READERS, SETTINGS


def load(config: DataConfig) -> Dataset:
    """Return the dataset that a configuration names, from the cache if it is there.

    >>> from seedless.core.config import DataConfig
    >>> load(DataConfig(name="simulated", records=3))
    Dataset('simulated', 3 samples of (12, 1000), multi-label)
    """
    data = _read(config)
    return replace(data, protocol=choose_splits(config, data.folds))


def choose_splits(config: DataConfig, folds: NDArray[np.int64]) -> Mapping[str, tuple[int, ...]]:
    """Return which folds make up which split: a matter of the configuration and the reader.

    Of data in folds (n,) that someone else packed, nothing but these folds decides.
    """
    if config.name.endswith(".npz"):
        protocol: Mapping[str, tuple[int, ...]] = choose_protocol(folds)
    else:
        protocol = choose("dataset", config.name, READERS).protocol
    if config.test_fold is None and config.val_fold is None:
        return protocol
    test, val = config.test_fold or 10, config.val_fold or 9
    every = sorted(fold for split in protocol.values() for fold in split)
    if every != list(range(1, 11)):
        raise DataError(
            f"{config.name} does not have ten folds to choose from; leave data.test_fold and "
            "data.val_fold out"
        )
    if test == val:
        raise DataError(f"data.test_fold and data.val_fold are both {test}: choose two folds")
    rest = tuple(fold for fold in every if fold not in (test, val))
    return {"train": rest, "val": (val,), "test": (test,)}


def keep_leads(data: Dataset, wanted: tuple[str, ...]) -> Dataset:
    """Return the dataset with only these leads, chosen by name and in this order."""
    missing = [name for name in wanted if name not in (data.leads or ())]
    if data.leads is None or missing:
        problem = "names no leads" if data.leads is None else f"lacks {', '.join(missing)}"
        raise DataError(f"{data.name} {problem}: leave data.leads out, or name them in its `leads`")
    if data.leads == wanted:
        return data
    samples = np.ascontiguousarray(data.X[:, [data.leads.index(name) for name in wanted]])
    return replace(data, X=samples, leads=wanted, content=None)


def _read(config: DataConfig) -> Dataset:
    name, path = config.name, config.path
    if name.endswith(".npz"):
        if path is not None:
            raise DataError(f"data.name is the file {name}; leave data.path out")
        chosen = _check_settings(config, name, ("leads",))
        data = _read_npz(Path(name))
        return keep_leads(data, get_lead_set(chosen["leads"])) if chosen else data
    if name in CATALOG and CATALOG[name].kind == "noise":
        raise DataError(f"{name} is noise, without records or classes: seedless data check {name}")
    _refuse_other_file(name)
    reader = choose("dataset", name, READERS)
    options = {**_check_settings(config, name, reader.settings), **reader.fixed}
    if "records" in options:
        options["count"] = options.pop("records")
    if reader.computed:
        if path is not None:
            own = f"; for the arrays in that file say data.name={path}" * path.endswith(".npz")
            raise DataError(f"{name} is computed; leave the path out{own}")
        return reader.read(**options)
    place = Path(path) if path is not None else find_download(name, config.size)
    if reader.sources is None or not config.cache:
        return reader.read(place, **options)
    sources = reader.sources(place, **options)
    key = _make_cache_key(name, reader.read, options)
    return open_cached(
        find_entry_folder(name, key, sources),
        key,
        sources,
        lambda: reader.read(place, **options),
        verify=config.verify,
    )


def _read_npz(path: Path) -> Dataset:
    """Return the arrays of an .npz file: a user's own, or those of a MedMNIST set."""
    return read_medmnist(path) if is_medmnist(list_npz(path)) else read_arrays(path)


def find_download(name: str, size: int | None = None) -> Path:
    """Return where `seedless data fetch` stored a dataset; where it did not, say how to get it.

    ``size``: pixels on a side, of images that are published in several sizes.
    """
    if name not in CATALOG:
        raise DataError(f"{name} needs the folder that holds its records: give its path")
    entry = find_entry(name, size)
    place = find_cache_folder() / "downloads" / name / entry.root
    if not place.exists():
        raise DataError(
            f"{name} needs the folder or file that holds it: give its path, or get it with "
            f"`seedless data fetch {name}{'' if size is None else f' --size {size}'}`; the dataset "
            "'simulated' needs none"
        )
    return place


def check_data_exists(config: DataConfig) -> None:
    """Refuse a dataset whose name is unknown, or whose file or folder does not exist.

    Nothing is read, so a file that exists may still be refused when it is read.
    """
    if config.name.endswith(".npz"):
        if not Path(config.name).exists():
            raise DataError(f"no file at {config.name!r}")
        return
    _refuse_other_file(config.name)
    reader = choose("dataset", config.name, READERS)
    if reader.computed:
        return
    place = Path(config.path or find_download(config.name, config.size))
    if not place.exists():
        raise DataError(f"no file or folder at {str(place)!r}; {config.name} is read from it")


def _refuse_other_file(name: str) -> None:
    """Refuse a file or folder that is no .npz file, and say how arrays are stored."""
    if name.endswith(".npy") or (name not in READERS and Path(name).exists()):
        raise DataError(
            f"data.name is {name!r}, but arrays are one .npz file: "
            "np.savez('mine.npz', X=samples, Y=labels, folds=folds)"
        )


def _make_cache_key(
    name: str, read: Callable[..., Dataset], options: dict[str, Any]
) -> dict[str, Any]:
    """Return all that decides what a reader returns: its settings, defaults too, and the release.

    A default that is written out gives the same key, and a new release reads the sources again.
    """
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(read).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }
    plain = {
        key: dict(value) if isinstance(value, Mapping) else value
        for key, value in {**defaults, **options}.items()
    }
    return {"reader": name, "release": __version__, **plain}


def _check_settings(config: DataConfig, name: str, accepted: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that are not None; refuse one that the dataset does not have."""
    chosen = {key: value for key in SETTINGS if (value := getattr(config, key)) is not None}
    for key in chosen:
        if key not in accepted:
            has = f"it has {', '.join(accepted)}" if accepted else "it has none of these settings"
            raise DataError(f"{name} has no setting data.{key}; {has}")
    return chosen
