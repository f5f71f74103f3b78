"""How large a study is, and on which data: the base configuration that its arms vary.

smoke: seconds, on a small network; shows that everything works and means nothing.
small: minutes to an hour on a small machine.
paper: the published protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.core.config import Config, override
from seedless.core.config_files import open_config
from seedless.core.errors import StudyError
from seedless.core.registry import choose


@dataclass(frozen=True)
class Size:
    """What a scale means: how many seeds, and what it changes of the published protocols."""

    name: str
    seeds: int
    ecg: dict[str, dict[str, Any]]
    images: dict[str, dict[str, Any]]


SIZES: dict[str, Size] = {
    "smoke": Size(
        "smoke",
        2,
        {
            "model": {"small": True},
            "order": {"batch_size": 32},
            "train": {"epochs": 2, "evaluate_every": 1, "checkpoint_every": 2, "warmup_steps": 4},
        },
        {
            "model": {"small": True},
            "order": {"batch_size": 32},
            "train": {"epochs": 1, "evaluate_every": 1, "checkpoint_every": 1, "rate": 0.05},
        },
    ),
    "small": Size(
        "small",
        5,
        {
            "model": {"small": True},
            "order": {"batch_size": 32},
            "train": {"epochs": 20, "evaluate_every": 2, "checkpoint_every": 20}
            | {"warmup_steps": 200},
        },
        {
            "model": {"small": True},
            "order": {"batch_size": 64},
            "train": {"epochs": 10, "evaluate_every": 2, "checkpoint_every": 10, "rate": 0.05},
        },
    ),
    "paper": Size("paper", 20, {}, {"train": {"checkpoint_every": 200}}),
}

# Records that are simulated, by scale: for signals, and for images.
SIMULATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "smoke": ({"preset": "tiny"}, {"records": 160}),
    "small": ({"preset": "small"}, {"records": 1000}),
    "paper": ({"preset": "full"}, {"records": 10_000}),
}


@dataclass(frozen=True)
class StudyOptions:
    """What a study is asked to run on: a scale, and data: simulated, a dataset's name, or a path.

    ``seeds`` and ``device`` replace the scale's own where given. ``folds``: a replicate is as many
    runs, each with another fold held out, whose test predictions are pooled. ``other``: datasets a
    model is tried on after training, as "NAME=PATH". ``noise`` is a folder of recorded noise, for
    the study that adds some; ``prove`` has a run of each arm executed again. ``changes`` are
    settings such as "train.epochs=30" that every run gets instead of the scale's, ``arms`` those
    that are run where not all are.
    """

    scale: str = "smoke"
    data: str = "simulated"
    seeds: int | None = None
    device: str = "auto"
    threads: int = 1
    folds: int | None = None
    other: tuple[str, ...] = ()
    noise: str | None = None
    prove: bool = False
    changes: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()

    @property
    def size(self) -> Size:
        """The scale's meaning."""
        return choose("scale", self.scale, SIZES)

    @property
    def count(self) -> int:
        """How many seeds an arm has."""
        return self.size.seeds if self.seeds is None else self.seeds

    @property
    def simulated(self) -> bool:
        """Whether the records are computed."""
        return self.data == "simulated"

    def ecg(self, **changes: dict[str, Any]) -> Config:
        """Return the published ECG protocol at this scale on these data, changed."""
        return self._build("ptb-xl", 0, self.size.ecg, changes)

    def images(self, **changes: dict[str, Any]) -> Config:
        """Return the published imaging protocol at this scale on these data, changed."""
        return self._build("medmnist", 1, self.size.images, changes)

    def cifar(self, **changes: dict[str, Any]) -> Config:
        """Return the published protocol for CIFAR-100 at this scale on these data, changed."""
        return self._build("cifar-100", 1, self.size.images, changes)

    def _build(
        self,
        preset: str,
        kind: int,
        smaller: dict[str, dict[str, Any]],
        changes: dict[str, dict[str, Any]],
    ) -> Config:
        config = open_config(preset)
        values = config.model_dump()
        if self.simulated:
            name = ("simulated", "simulated-images")[kind]
            values["data"] = {"name": name, **SIMULATED[self.size.name][kind]}
        elif self.data.endswith(".npz") or Path(self.data).exists():
            values["data"] = self._point_to(Path(self.data), values["data"], kind)
        elif self.data != config.data.name:
            values["data"] = {"name": self.data}
        values["execution"] |= {"device": self.device, "threads": self.threads}
        for part in (smaller, changes):
            for section, settings in part.items():
                values[section] |= settings
        return override(Config.model_validate(values), self.changes)

    def _point_to(self, path: Path, usual: dict[str, Any], kind: int) -> dict[str, Any]:
        if not path.exists():
            raise StudyError(f"--data {path}: there is no such file or folder")
        if kind == 1 and path.suffix == ".npz" and path.stem.endswith("mnist"):
            return {"name": path.stem, "path": str(path)}
        if path.suffix == ".npz":
            return {"name": str(path)}
        return {**usual, "path": str(path)}


def choose_init(basis: str, seed: int = 0) -> dict[str, Any]:
    """Return the settings of an initialization; only a random one takes the seed."""
    if basis.startswith("kaiming"):
        return {"basis": basis, "residual_scale": None, "seed": seed}
    return {"basis": basis, "residual_scale": 0.01, "seed": None}
