"""The seven MedMNIST sets: which of them are available, and the published run on one of them."""

from pathlib import Path
from typing import Any

from seedless.core.config import Config
from seedless.core.errors import DataError, StudyError
from seedless.data.loading import find_download
from seedless.data.readers.medmnist import SETS
from seedless.data.simulators.images import least_count
from seedless.studies.engine.options import SIMULATED, StudyOptions, choose_init, choose_order

# In the published order. At the scale "smoke" two sets are enough: one label an image, and several.
NAMES = (
    *("bloodmnist", "organcmnist", "dermamnist", "breastmnist", "retinamnist", "chestmnist"),
    "pathmnist",
)
SMOKE_NAMES = ("retinamnist", "chestmnist")
SMOKE_RECORDS = 320
ALL = "medmnist"  # as --data: every set that was fetched


def find_sets(options: StudyOptions) -> dict[str, str | None]:
    """Return the sets that a study runs on with their files; None for simulated images.

    ``options.data``: "simulated", an .npz file, a folder of such files, the name of a set that was
    downloaded, or "medmnist" for all that were downloaded.
    """
    if options.simulated:
        return dict.fromkeys(SMOKE_NAMES if options.scale == "smoke" else NAMES)
    path = Path(options.data)
    if path.is_dir():
        places = {name: path / f"{name}.npz" for name in NAMES}
        files = {name: str(file) for name, file in places.items() if file.is_file()}
    elif path.suffix == ".npz":
        files = {path.stem: str(path)} if path.stem in NAMES and path.is_file() else {}
    else:
        files = _find_fetched(NAMES if options.data == ALL else (options.data,))
    if not files:
        raise StudyError(
            f"--data {options.data}: expected simulated, the .npz of a MedMNIST set, a folder that "
            f"holds some, or sets that were fetched; the sets are {', '.join(NAMES)}"
        )
    return {**files}


def _find_fetched(names: tuple[str, ...]) -> dict[str, str]:
    files = {}
    for name in names:
        try:
            place = find_download(name)
        except DataError:
            continue
        files[name] = str(place)
    return files if set(files) <= set(NAMES) else {}


def build_run(
    options: StudyOptions, name: str, file: str | None, start: str, seed: int | None
) -> Config:
    """Return a run on a set: with a seeded order, or in the published order without a seed.

    That order is `golden_index`. A random start always needs a seed; without one it is 0.
    """
    # "No finding" is an answer in a multi-label set, so such images are trained on too.
    keep = SETS[name].task == "multi-label"
    return options.images(
        init=choose_init(start, seed or 0),
        order={**choose_order(seed, seed_free="golden_index"), "keep_unlabelled": keep},
        data=_choose_data(options, name, file),
    )


def describe_stand_ins(options: StudyOptions) -> tuple[str, ...]:
    """Return the note of a table about simulated images; none about real ones."""
    note = "Simulated images stand in: they share a set's channels, classes and task, no more."
    return (note,) if options.simulated else ()


def _choose_data(options: StudyOptions, name: str, file: str | None) -> dict[str, Any]:
    """Return the data section of a set, or of simulated images with its classes and task."""
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
