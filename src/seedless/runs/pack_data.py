"""The data of a run, packed so that they travel with it in a bundle."""

from __future__ import annotations

from pathlib import Path

from seedless.core.errors import RunError
from seedless.data.dataset_folder import write_packed
from seedless.data.loading import load
from seedless.proof.receipt import read_receipt
from seedless.runs.folder import read_config
from seedless.runs.user_model import GIVEN


def pack_data(run: Path, folder: Path) -> dict[str, Path]:
    """Pack a run's data into a folder; return its files by their names in a bundle."""
    config = read_config(run)
    if config.data.name == GIVEN:
        raise RunError(f"{run} is a run of fit(): its arrays are yours to hand on, with the model")
    data = load(config.data)
    expected = read_receipt(run)["predicate"]["data"]["digest"]
    if data.digest != expected:
        raise RunError(
            f"{run} was trained on other data than {config.data.name} holds now: expected "
            f"{expected}, found {data.digest}"
        )
    write_packed(folder, data)
    return {f"data/{path.name}": path for path in sorted(folder.iterdir())}
