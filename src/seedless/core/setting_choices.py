"""The names that a setting can have, read from source text: torch takes seconds to import.

Registries are dict literals in the packages that use them. A command that checks a name first finds
a typing error before it imports any of those packages.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from seedless.core.config import Config, flatten
from seedless.core.errors import UnknownNameError
from seedless.core.registry import suggest

DEVICES = ("auto", "cpu", "cuda")
GUARDS = ("refuse", "report")
LOSSES = ("bce", "cross_entropy")

_PACKAGE = Path(__file__).resolve().parent.parent
_FIXED = {
    "execution.device": DEVICES,
    "loss.name": LOSSES,
    "train.guard": GUARDS,
}
# Setting -> the file and the variable that hold its names.
_REGISTRIES = {
    "data.leads": ("data/leads.py", "LEAD_SETS"),
    "data.preset": ("data/simulators/population.py", "PRESETS"),
    "data.short": ("data/resample.py", "SHORT_RECORD_TREATMENTS"),
    "data.normalize": ("data/normalize.py", "METHODS"),
    "execution.arithmetic": ("train/arithmetic.py", "ARITHMETICS"),
    "execution.mode": ("train/step_modes.py", "STEP_MODES"),
    "execution.precision": ("train/arithmetic.py", "PRECISIONS"),
    "execution.storage": ("runs/prepare.py", "STORAGE"),
    "init.basis": ("init/starts.py", "INITIALIZATIONS"),
    "init.heads": ("core/marks.py", "HEADS"),
    "loss.class_weights": ("train/loss.py", "CLASS_WEIGHTS"),
    "model.name": ("models/registry.py", "MODELS"),
    "order.name": ("ordering/registry.py", "ORDERS"),
    "train.decay": ("train/learning_rate.py", "DECAYS"),
    "train.optimizer": ("train/optimizer.py", "OPTIMIZERS"),
}
_FURTHER = {"execution.mode": ("auto",)}  # what a command fills in before it looks the name up


def list_choices(setting: str) -> tuple[str, ...]:
    """Return the names that a setting can have; none for a setting that is not chosen by name.

    >>> list_choices("train.decay"), list_choices("train.rate")
    (('cosine', 'none'), ())
    """
    if setting in _FIXED:
        return _FIXED[setting]
    if setting not in _REGISTRIES:
        return ()
    return (*_FURTHER.get(setting, ()), *read_names(*_REGISTRIES[setting]))


def check_choices(config: Config) -> None:
    """Refuse a name that no registry has; the names of datasets are not looked at."""
    for setting, value in flatten(config.model_dump()).items():
        names = list_choices(setting)
        if names and value is not None and value not in names:
            raise UnknownNameError(
                f"unknown {setting} {value!r}{suggest(value, names)}; known: {', '.join(names)}"
            )


@cache
def read_names(file: str, variable: str) -> tuple[str, ...]:
    """Return the keys of a dict literal, or the items of a tuple, that a file assigns to a name."""
    for node in ast.parse((_PACKAGE / file).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(getattr(target, "id", None) == variable for target in targets):
            value = getattr(node, "value", None)
            items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
            return tuple(str(ast.literal_eval(item)) for item in items if item is not None)
    raise LookupError(f"{file} assigns nothing to {variable}")
