"""Whether a finished run is the one that a plan means: by its key, and by its settings.

A plan may leave settings open, and the run fills them in from the machine and the data. A run
belongs to a plan if the two agree in every setting that the plan does not leave open. The key of a
run is made from the plan, so one run has a few possible keys: one for each choice of settings that
the plan could have left open.
"""

from collections.abc import Collection
from itertools import chain, combinations
from typing import Any

from seedless.core.config import Config, flatten
from seedless.core.digests import digest_value, get_hex
from seedless.core.mismatch import Mismatch, compare_values

KEY_DIGITS = 16
# The settings that a plan may leave open, each with the value that leaves it so.
OPEN_SETTINGS = {
    "execution.device": "auto",
    "execution.mode": "auto",
    "execution.threads": None,
    "model.leads": None,
    "model.channels": None,
    "model.classes": None,
    "data.normalize": None,
    "loss.name": None,
}


def name_run(digest: str) -> str:
    """Return the key of a run, which is the name of its folder, from its plan's digest.

    Example:
        >>> name_run("sha256:00112233445566778899aabbccddeeff")
        '0011223344556677'
    """
    return get_hex(digest)[:KEY_DIGITS]


def compare_with_plan(plan: Config, run: Config) -> list[Mismatch]:
    """Return the settings in which a run differs from its plan, except for those left open."""
    planned = flatten(plan.identity())
    left_open = [
        key for key, value in OPEN_SETTINGS.items() if key in planned and planned[key] == value
    ]
    return compare_values(plan.identity(), _leave_open(run, left_open))


def list_keys(run: Config) -> set[str]:
    """Return the key of every plan that a finished run's configuration could have come from."""
    settled = flatten(run.identity())
    filled_in = [
        key for key, value in OPEN_SETTINGS.items() if key in settled and settled[key] != value
    ]
    choices = chain.from_iterable(
        combinations(filled_in, count) for count in range(len(filled_in) + 1)
    )
    return {name_run(digest_value(_leave_open(run, choice))) for choice in choices}


def _leave_open(config: Config, keys: Collection[str]) -> dict[str, Any]:
    """Return the settings of a configuration as if some of them had been left open."""
    values = config.identity()
    for key in keys:
        section, name = key.split(".")
        if name in values[section]:
            values[section][name] = OPEN_SETTINGS[key]
    return values
