"""What a receipt states of the weights file that its run began with."""

from typing import Any

from seedless.core.digests import is_digest
from seedless.core.tensor_files import MAX_NAME_CHARACTERS

FILE_FIELD = "file"  # of `initialization`
MAX_FILE_NAME = 255
_LISTS = ("taken", "started", "kept")
_FIELDS = {"name", "digest", "tensors", *_LISTS}


def check_weights_file(claimed: Any) -> list[str]:
    """Return what is wrong with the form of a receipt's `initialization.file`, a sentence each.

    >>> check_weights_file({"name": "base.safetensors"})
    ['the receipt does not state name, digest and tensors of the weights file it began with']
    """
    problem = "the receipt does not state name, digest and tensors of the weights file it began"
    if not isinstance(claimed, dict) or {*claimed} != _FIELDS:
        return [f"{problem} with"]
    name = claimed["name"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_FILE_NAME or {*name} & {*"/\0"}:
        return ["the weights file in the receipt does not have the name of a file"]
    if not is_digest(claimed["digest"]) or not is_digest(claimed["tensors"]):
        return [f"{problem} with"]
    seen: set[str] = set()
    for part in _LISTS:
        names = claimed[part]
        if not isinstance(names, list) or not all(map(_is_name, names)):
            return [f"{part} of the weights file in the receipt is not a list of names"]
        if names != sorted(names) or len({*names}) < len(names) or seen & {*names}:
            return [f"{part} of the weights file in the receipt is not sorted, each name once"]
        seen |= {*names}
    if not claimed["taken"]:
        return ["the receipt names a weights file of which nothing was taken"]
    return []


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARACTERS
