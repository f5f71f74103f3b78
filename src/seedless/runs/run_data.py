"""The data of a finished run: loaded again from where they are now, or packed into a bundle."""

from pathlib import Path

from seedless.core.config import Config
from seedless.core.dataset import Dataset
from seedless.core.errors import RunError
from seedless.data.dataset_folder import is_packed, read_packed, write_packed
from seedless.data.loading import load
from seedless.runs.prepare import USER_MODEL
from seedless.runs.validation import open_validated


def load_run_data(config: Config, moved_to: str | None = None) -> Dataset:
    """Return the data a configuration names.

    ``moved_to``: where they are now, or the folder of a bundle they were packed into.
    """
    if moved_to is None:
        return load(config.data)
    if is_packed(Path(moved_to)):
        return read_packed(Path(moved_to))
    place = {"name" if config.data.name.endswith(".npz") else "path": moved_to}
    return load(config.change(data=place).data)


def pack_data(run: Path, folder: Path) -> dict[str, Path]:
    """Pack a run's data into a folder; return its files by their names in a bundle."""
    validated = open_validated(run)
    config = validated.config
    if config.data.name == USER_MODEL:
        raise RunError(f"{run} is a run of fit(): pass on its arrays and the model yourself")
    data = load(config.data)
    expected = validated.claims["data"]["digest"]
    if data.digest != expected:
        raise RunError(
            f"{run} was trained on other data than {config.data.name} holds now: expected "
            f"{expected}, found {data.digest}"
        )
    write_packed(folder, data)
    return {f"data/{path.name}": path for path in sorted(folder.iterdir())}
