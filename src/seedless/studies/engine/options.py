"""What a study is run on: a scale, data, seeds and devices. Configurations are built from it.

smoke: seconds, on a small network; shows that everything works and means nothing.
small: minutes to an hour on a small machine.
paper: the published protocol.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.core.config import Config, override
from seedless.core.config_files import open_config
from seedless.core.errors import StudyError
from seedless.core.registry import choose
from seedless.init import INITIALIZATIONS
from seedless.init.starts import write_out_defaults
from seedless.models import MODELS


@dataclass(frozen=True)
class Scale:
    """How many seeds an arm has, and what is changed in the published configurations."""

    name: str
    seeds: int
    ecg: dict[str, dict[str, Any]]
    images: dict[str, dict[str, Any]]


SCALES: dict[str, Scale] = {
    "smoke": Scale(
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
    "small": Scale(
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
    "paper": Scale("paper", 20, {}, {"train": {"checkpoint_every": 200}}),
}

# The settings of simulated data by scale: of ECGs, and of images.
SIMULATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "smoke": ({"preset": "tiny"}, {"records": 160}),
    "small": ({"preset": "small"}, {"records": 1000}),
    "paper": ({"preset": "full"}, {"records": 10_000}),
}


@dataclass(frozen=True)
class StudyOptions:
    """The options that decide which runs a study has, and how they are measured.

    Attributes:
        scale: smoke, small or paper.
        data: "simulated", the name of a dataset, or the path of a file or folder.
        seeds: seeds of each arm; None for the number of the scale.
        device: cpu, cuda or auto.
        threads: threads of each run.
        folds: how many folds are held out in turn. A replicate then is one run per fold, and its
            score is computed from the test predictions of all of them. None: one run.
        other: datasets to test trained models on, each as "NAME=PATH".
        noise: a folder of recorded noise; None for simulated noise.
        prove: execute one run of each arm again and compare the bits.
        changes: settings that all runs get in place of those of the scale, "train.epochs=30".
        arms: the arms to run; an empty tuple means all.
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
    def size(self) -> Scale:
        """What the scale means."""
        return choose("scale", self.scale, SCALES)

    @property
    def count(self) -> int:
        """How many seeds an arm has."""
        return self.size.seeds if self.seeds is None else self.seeds

    @property
    def simulated(self) -> bool:
        """Whether the data are simulated."""
        return self.data == "simulated"

    @property
    def data_path(self) -> str | None:
        """Where the data are on this machine, if they are a file or folder; runs may be moved."""
        return self.data if not self.simulated and Path(self.data).exists() else None

    @property
    def as_published(self) -> bool:
        """Whether data, networks and protocol are the published ones, so that scores compare.

        The precision of arithmetic may differ; simulated data, arrays of one's own, another scale,
        pooled folds and other settings of training may not.
        """
        own_arrays = self.data.endswith(".npz") and not Path(self.data).stem.endswith("mnist")
        retrained = any(not change.startswith("execution.") for change in self.changes)
        other = self.simulated or own_arrays or self.folds is not None or retrained
        return self.scale == "paper" and not other

    def ecg(self, **changes: dict[str, Any]) -> Config:
        """Return the published ECG configuration at this scale on these data, changed."""
        return self._build("ptb-xl", self.size.ecg, changes)

    def ecg_run(self, start: str, seed: int | None, **changes: dict[str, Any]) -> Config:
        """Return `ecg` with a start, and with the seed or, for None, in content order without one.

        A random start always needs a seed; without one it is 0.
        """
        return self.ecg(init=choose_init(start, seed or 0), order=choose_order(seed), **changes)

    def images(self, **changes: dict[str, Any]) -> Config:
        """Return the published imaging configuration at this scale on these data, changed."""
        return self._build("medmnist", self.size.images, changes)

    def cifar(self, **changes: dict[str, Any]) -> Config:
        """Return the published CIFAR-100 configuration at this scale on these data, changed."""
        return self._build("cifar-100", self.size.images, changes)

    def _build(
        self,
        preset: str,
        smaller: dict[str, dict[str, Any]],
        changes: dict[str, dict[str, Any]],
    ) -> Config:
        config, images = open_config(preset), preset != "ptb-xl"
        values = config.model_dump()
        # [Step 1] Replace the preset's dataset by the one of `data`.
        if self.simulated:
            name = "simulated-images" if images else "simulated"
            values["data"] = {"name": name, **SIMULATED[self.size.name][images]}
        elif self.data.endswith(".npz") or Path(self.data).exists():
            values["data"] = self._read_from(Path(self.data), values["data"], images)
        elif self.data != config.data.name:
            values["data"] = {"name": self.data}
        values["execution"] |= {"device": self.device, "threads": self.threads}
        # [Step 2] Apply the scale, then the study's changes, then the user's own settings.
        for part in (smaller, changes):
            for section, settings in part.items():
                values[section] |= settings
        return write_out_start(override(Config.model_validate(values), self.changes))

    def _read_from(self, path: Path, usual: dict[str, Any], images: bool) -> dict[str, Any]:
        """Return the data section that reads a file or folder."""
        if not path.exists():
            raise StudyError(f"--data: no file or folder at {str(path)!r}")
        if images and path.suffix == ".npz" and path.stem.endswith("mnist"):
            return {"name": path.stem, "path": str(path)}
        if path.suffix == ".npz":
            return {"name": str(path)}
        return {**usual, "path": str(path)}


def choose_init(start: str, seed: int = 0) -> dict[str, Any]:
    """Return the init section of a start, named as the arms of studies are.

    "kaiming" is a start with the residual scale and head of the recipe it was published with;
    "kaiming at 0.01" has the residual scale 0.01 and the start's own head, "kaiming at 0.01 etf" an
    equiangular one. The seed is that of a random start, and the offset of one drawn without a seed.

    Example: ``choose_init("orthogonal at 0.01", seed=3)``
    """
    basis, at, rest = start.partition(" at ")
    scale, _, head = rest.partition(" ")
    if at and (head not in ("", "etf") or not _is_number(scale)):
        raise StudyError(f'expected a start such as "kaiming at 0.01 etf", got {start!r}')
    keyed_by = choose("basis", basis, INITIALIZATIONS).keyed_by
    return {
        "basis": basis,
        "residual_scale": float(scale) if at else None,
        "heads": (head or "basis") if at else None,
        "seed": seed if keyed_by == "seed" else None,
        "offset": seed if keyed_by == "offset" else 0,
    }


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


def write_out_start(config: Config) -> Config:
    """Return the configuration with residual scale and head written out.

    Their defaults differ from start to start: left out, they mean two things in two arms.
    """
    choose("basis", config.init.basis, INITIALIZATIONS)
    declared = choose("model", config.model.name, MODELS).head
    scale, heads = write_out_defaults(
        config.init.basis, config.init.residual_scale, config.init.heads, declared
    )
    return config.change(init={"residual_scale": scale, "heads": heads})


def choose_order(seed: int | None, seed_free: str = "content") -> dict[str, Any]:
    """Return the order section: a shuffle by the seed, or without one an order that needs none."""
    return {"name": seed_free} if seed is None else {"name": "seeded", "seed": seed}
