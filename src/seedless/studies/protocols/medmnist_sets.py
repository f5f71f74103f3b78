"""The seven MedMNIST sets: which of them are there, and a run of the published protocol on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seedless.core.config import Config
from seedless.core.errors import DataError, StudyError
from seedless.data.loading import find_download
from seedless.data.readers.medmnist import SETS
from seedless.data.simulators.images import least_count
from seedless.studies.engine.options import SIMULATED, StudyOptions, choose_init

# As published, from the easiest set to the hardest to learn; retina and chest stand for all at
# smoke: one label an image, and several.
NAMES = (
    *("bloodmnist", "organcmnist", "dermamnist", "breastmnist", "retinamnist", "chestmnist"),
    "pathmnist",
)
FEW = ("retinamnist", "chestmnist")
SMOKE_RECORDS = 320
ALL = "medmnist"  # as --data: every set that was fetched


def find_sets(options: StudyOptions) -> dict[str, str | None]:
    """Return the sets a study can run on with their files, None where images are simulated.

    Simulated: all, and two at smoke. A file: its set. A folder: every set whose .npz lies there. A
    set's name: the fetched one; "medmnist": every fetched one.
    """
    if options.simulated:
        return dict.fromkeys(FEW if options.scale == "smoke" else NAMES)
    path = Path(options.data)
    if path.is_dir():
        places = {name: path / f"{name}.npz" for name in NAMES}
        found = {name: str(file) for name, file in places.items() if file.is_file()}
    elif path.suffix == ".npz":
        found = {path.stem: str(path)} if path.stem in NAMES and path.is_file() else {}
    else:
        found = _find_fetched(NAMES if options.data == ALL else (options.data,))
    if not found:
        raise StudyError(
            f"--data {options.data}: expected simulated, the .npz of a MedMNIST set, a folder that "
            f"holds some, or sets that were fetched; the sets are {', '.join(NAMES)}"
        )
    return {**found}


def _find_fetched(names: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            place = find_download(name)
        except DataError:
            continue
        found[name] = str(place)
    return found if set(found) <= set(NAMES) else {}


def build_run(
    options: StudyOptions, name: str, file: str | None, basis: str, seed: int | None
) -> Config:
    """Return a run on a set: with a seeded order, or without a seed in golden order.

    A random basis in golden order has seed 0: it needs one.
    """
    order: dict[str, Any] = {"name": "golden"}
    if seed is not None:
        order = {"name": "seeded", "seed": seed}
    start = {**choose_init(basis, seed or 0), "residual_scale": None}
    # "No finding" is an answer in a multi-label set, and is trained on.
    keep = SETS[name].task == "multi-label"
    return options.images(
        init=start, order={**order, "keep_unlabelled": keep}, data=_name_data(options, name, file)
    )


def describe_stand_ins(options: StudyOptions) -> tuple[str, ...]:
    """Return what to say of images that are simulated; nothing of real ones."""
    said = "Simulated images stand in: they share a set's channels, classes and task, no more."
    return (said,) if options.simulated else ()


def _name_data(options: StudyOptions, name: str, file: str | None) -> dict[str, Any]:
    """Return a set as data, or what stands in for it: as many channels and classes, the task."""
    if file is not None:
        return {"name": name, "path": file, "normalize": "pixels"}
    entry = SETS[name]
    channels, classes = (entry.shape or (1,))[0], len(entry.classes)
    task = entry.task or "multi-class"
    records = SMOKE_RECORDS
    if options.scale != "smoke":
        usual = int(SIMULATED[options.size.name][1]["records"])
        records = max(usual, least_count(classes, task))
    return {"records": records, "channels": channels, "classes": classes, "task": task}
