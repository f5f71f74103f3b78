"""The studies by name."""

from __future__ import annotations

from importlib import import_module

from seedless.core.registry import choose
from seedless.studies.engine.study import Study

# One file each, imported when it is asked for.
STUDIES = (
    "main",
    "ablation",
    "basis",
    "golden",
    "order",
    "cv",
    "perclass",
    "convergence",
    "theory",
    "power",
    "variance",
    "crossdataset",
    "medmnist",
    "medmnist_bases",
    "cifar100",
    "noise",
    "demographics",
    "attribution",
)


def open_study(name: str) -> Study:
    """Return a study by its name."""
    choose("study", name, dict.fromkeys(STUDIES))
    study: Study = import_module(f"seedless.studies.published.{name}").STUDY
    return study
