"""Prepare a finished run again: from its configuration, from moved data, or from an entry point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seedless.core.config import Config
from seedless.core.dataset import Dataset
from seedless.core.errors import ConfigError
from seedless.data.dataset_folder import is_packed, read_packed
from seedless.data.loading import load
from seedless.runs.prepare import Prepared, prepare
from seedless.runs.user_model import ENTRY_HELP, GIVEN, load_entry, prepare_given

Make = Callable[[Config], Prepared]


def choose_maker(config: Config, entry: str | None, data: str | None) -> Make:
    """Return what prepares a run again: from its configuration, or from an entry point."""
    if config.model.name == GIVEN and entry is None:
        raise ConfigError(f"this is a run of fit(): {ENTRY_HELP}")
    if entry is not None:
        given = load_entry(entry)
        return lambda config: prepare_given(config, given)
    return lambda config: prepare_moved(config, data)


def prepare_moved(config: Config, data: str | None) -> Prepared:
    """Prepare a run whose data may lie elsewhere now, or were packed with it."""
    return prepare(config) if data is None else prepare(config, load_moved(config, data))


def load_moved(config: Config, data: str | None) -> Dataset:
    """Return the data of a run, which may lie elsewhere now, or were packed with it."""
    if data is None:
        return load(config.data)
    if is_packed(Path(data)):
        return read_packed(Path(data))
    place = {"name" if config.data.name.endswith(".npz") else "path": data}
    return load(config.change(data=place).data)
