"""The published studies by name. Each is one file, imported when its study is opened."""

from importlib import import_module

from seedless.core.registry import choose
from seedless.studies.engine.study import Study

STUDIES = (
    "main",
    "factorial",
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


def list_studies() -> dict[str, str]:
    """Return the question of every study by its name."""
    return {name: open_study(name).question for name in STUDIES}


def open_study(name: str) -> Study:
    """Return a study by its name.

    Example: ``open_study("basis").plan(StudyOptions(scale="smoke"))``
    """
    choose("study", name, dict.fromkeys(STUDIES))
    study: Study = import_module(f"seedless.studies.published.{name}").STUDY
    return study
