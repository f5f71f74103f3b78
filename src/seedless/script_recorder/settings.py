"""What the recorder is told to do: one JSON file, whose path is in an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Mapping, Sequence  # noqa: UP035  # Python 3.9 runs this file too

SETTINGS_VARIABLE = "SEEDLESS_RECORDER"
INJECT_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inject")


@dataclass(frozen=True)
class Settings:
    """What to record, and where.

    Attributes:
        folder: the absolute path of the folder that gets one file per process.
        ops_at: the step whose operations are recorded, counted from 1; None records none.
        end_after: end the process after that many steps; None lets it finish.
        seeds: for experiments: the value each of "python", "numpy" and "torch" is seeded with, in
            place of every seed from entropy; `"values": True` replaces explicit seeds too.
        files: whether files that the script opens are observed.
        deterministic: for experiments: use torch's deterministic algorithms from the start, and do
            not let the script change that; fill the memory of `np.empty`, too.
        fixed: for experiments: "clock", "entropy" or "completion"; see outside_values.
    """

    folder: str
    ops_at: int | None = None
    end_after: int | None = None
    seeds: Mapping[str, Any] = field(default_factory=dict)
    files: bool = True
    deterministic: bool = False
    fixed: Sequence[str] = ()


def read_settings(path: str) -> Settings:
    """Return the settings in a file."""
    with open(path, encoding="utf-8") as file:
        return Settings(**json.load(file))


def write_settings(settings: Settings, path: str) -> None:
    """Write settings for a process that is started with `make_environment`."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(asdict(settings), file)


def make_environment(settings_path: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of an environment in which every Python process starts the recorder.

    Example:
        subprocess.run(["python", "train.py"], env=make_environment("settings.json", os.environ))
    """
    paths = [INJECT_FOLDER, *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(paths),
        SETTINGS_VARIABLE: os.path.abspath(settings_path),
    }
