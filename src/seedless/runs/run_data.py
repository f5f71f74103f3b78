"""The data of a finished run: loaded again from where they are now, or packed into a bundle."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from seedless.core.config import Config
from seedless.core.dataset import Dataset
from seedless.core.errors import DataError, RunError
from seedless.data.dataset_folder import is_packed, read_packed, write_packed
from seedless.data.loading import check_data_exists, choose_splits, load
from seedless.data.model_inputs import sort_records
from seedless.proof.receipt import get_content_digest
from seedless.runs.prepare import USER_MODEL
from seedless.runs.validation import ValidatedRun


class RunData(NamedTuple):
    """The data of a run, and in words where they came from, for a verdict.

    ``source`` is empty where this machine computed the data or had fetched them itself.
    """

    data: Dataset
    source: str = ""


def load_run_data(config: Config, moved_to: str | None = None) -> RunData:
    """Return the data a configuration names.

    ``moved_to``: where they are now, or the folder of a bundle they were packed into. Packed data
    are used only where this machine neither computes the dataset nor has a copy of it.
    """
    is_file = config.data.name.endswith(".npz")
    if is_file and moved_to is None and not Path(config.data.name).exists():
        raise DataError(
            f"no file at {config.data.name!r}, where the run found its data: give --data FILE, "
            "where it is now (in Python: data=)"
        )
    packed = moved_to is not None and is_packed(Path(moved_to))
    if moved_to is None or (packed and has_own_copy(config)):
        place = config.data.name if is_file else config.data.path
        return RunData(load(config.data), f"on the data in {place}" if place else "")
    if packed:
        return RunData(read_packed_data(config, Path(moved_to)), "on the data packed with it")
    if is_file and Path(moved_to).is_dir():
        moved_to = str(Path(moved_to) / Path(config.data.name).name)
    moved = {"name" if is_file else "path": moved_to}
    check_data_exists(config.change(data=moved).data)
    return RunData(load(config.change(data=moved).data), f"on the data in {moved_to}")


def has_own_copy(config: Config) -> bool:
    """Whether this machine computes a run's dataset, or has a copy of it that it can read.

    An .npz file is not looked for: one with the same name here may be another.
    """
    if config.data.name.endswith(".npz"):
        return False
    try:
        check_data_exists(config.data)
    except DataError:
        return False
    return True


def read_packed_data(config: Config, folder: Path) -> Dataset:
    """Return a packed dataset; its splits must be those that the configuration gives it."""
    data = read_packed(folder)
    expected = choose_splits(config.data, data.folds)
    if {split: {*folds} for split, folds in data.protocol.items()} != {
        split: {*folds} for split, folds in expected.items()
    }:
        raise DataError(
            f"the data in {folder} cannot be used: expected the splits that {config.data.name} "
            f"has, {_show(expected)}; got {_show(data.protocol)}. Get the bundle again from "
            "someone you trust"
        )
    return data


def pack_data(run: ValidatedRun, folder: Path) -> None:
    """Pack a run's data into a new folder, to travel with the run in a bundle."""
    config = run.config
    if config.data.name == USER_MODEL:
        raise RunError(f"{run.path} is a run of fit(): pass on its arrays and the model yourself")
    data = sort_records(load(config.data))  # hashed in memory: a damaged cache is not passed on
    expected = get_content_digest(run.claims)
    if data.digest != expected:
        raise RunError(
            f"{run.path} was trained on other data than {config.data.name} holds now: expected "
            f"{expected}, found {data.digest}"
        )
    write_packed(folder, data)


def _show(protocol: Mapping[str, tuple[int, ...]]) -> str:
    return "; ".join(f"{split}: folds {', '.join(map(str, protocol[split]))}" for split in protocol)
