"""Does what a receipt states of the weights file agree with the settings and the trail?

The file itself is not needed. `init.reinitialize` determines which tensors were taken from it, and
line 0 of the trail has their digests. Executing the run again checks the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.digests import digest_value
from seedless.core.weights_file import FILE_START
from seedless.proof.schemas import has_weights_file
from seedless.proof.weights_claims import FILE_FIELD
from seedless.runs.initial_weights import is_listed

if TYPE_CHECKING:
    from seedless.runs.validation import ValidatedRun

_MODEL = "model/"  # how the names of a model's tensors begin in a trail


def check_weights_file(run: ValidatedRun) -> list[str]:
    """Return what is wrong with the weights file that a receipt says its run began with."""
    init, start = run.config.init, run.claims["initialization"]
    if not has_weights_file(run.claims):
        if init.weights_digest is not None or init.basis == FILE_START:
            return ["config.toml names a weights file, and the receipt does not"]
        return []
    file, problems = start[FILE_FIELD], []
    # [Step 1] The settings name the same file, and the same tensors to initialize.
    if init.weights_digest != file["digest"]:
        problems.append("the receipt's weights file is not the one that config.toml names")
    patterns = init.reinitialize or ()
    for part in ("taken", "started"):
        wrong = [name for name in file[part] if is_listed(name, patterns) != (part == "started")]
        if wrong:
            problems.append(f"{part} in the receipt is not what init.reinitialize says: {wrong[0]}")
    if (init.basis == FILE_START) != (init.reinitialize is None):
        problems.append("init.basis does not suit init.reinitialize")
    # [Step 2] The tensors are those that the model had before the first step.
    if run.left_out:
        return problems
    state = run.trail[0]["state"]
    named = _name([*file["taken"], *file["started"], *file["kept"]])
    if {*named} != {name for name in state if name.startswith(_MODEL)}:
        problems.append("the receipt does not say of every tensor where its first values are from")
    elif digest_value({name: state[name] for name in _name(file["taken"])}) != file["tensors"]:
        problems.append("the tensors taken from the file are not those of the trail's first line")
    return problems


def _name(names: list[str]) -> list[str]:
    return [f"{_MODEL}{name}" for name in names]
