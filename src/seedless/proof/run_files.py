"""The names that a run folder may hold, and the check that it holds no others.

A file with another name could be there to be executed: a `torch.py`, where the folder is on the
import path. A link, a pipe or a device with the name of a run's file could lead elsewhere, or never
end. A file with holes can claim a terabyte that takes no room on the disk, and hours to hash. So
names, kinds and sizes are checked first, and nothing in the folder is opened before.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from seedless.core.errors import RunError
from seedless.proof import script_claims
from seedless.proof.loop_lines import parse_trail_name
from seedless.proof.receipt import (
    FILE,
    PAGE,
    SIGNATURE,
    UNCOVERED,
    WEIGHTS,
)
from seedless.proof.trail import FILE as TRAIL
from seedless.train.checkpoint import CHECKPOINT_FOLDER, parse_checkpoint_name
from seedless.train.log import LOG_FILE

# The files that a receipt covers, besides the checkpoints.
COVERED = ("config.toml", TRAIL, LOG_FILE, WEIGHTS, "predictions.npz", "metrics.json")
TOP_NAMES = frozenset({*COVERED, *UNCOVERED})
# The files of a script's run: those that it read, listed, and the steps of each of its processes.
DATA_LIST = "data.jsonl"
_SCRIPT_UNCOVERED = frozenset({FILE, ".lock", SIGNATURE, "model.sig", PAGE})
MAX_PROBLEMS = 10  # a folder can hold millions of files; so many problems are listed
MAX_HOLES = 2**30  # bytes that the files of a run may claim without having them on the disk

# What `write_atomic` leaves where its process is killed.
_TEMPORARY = re.compile(r"\..+\.[0-9]+\.part")


def is_run_file(name: str, *, finished: bool = True) -> bool:
    """Whether a run can have a file of this POSIX path in its folder.

    ``finished``: False also allows what only an unfinished run has, a checkpoint within an epoch
    and the temporary file of a process that was killed.
    """
    folder, _, last = name.rpartition("/")
    if folder not in ("", CHECKPOINT_FOLDER):
        return False
    if not finished and _TEMPORARY.fullmatch(last):
        return True
    if not folder:
        return name in TOP_NAMES or is_script_file(name)
    position = parse_checkpoint_name(last)
    return position is not None and not (finished and position.batch)


def is_script_file(name: str, *, covered: bool = True) -> bool:
    """Whether the run of a script can have a file of this name that its receipt covers.

    ``covered``: False also allows the receipt, its signatures and the page for people.
    """
    if not covered and name in _SCRIPT_UNCOVERED:
        return True
    return name == DATA_LIST or parse_trail_name(name) is not None


def check_listed_names(names: Iterable[str], kind: Any) -> list[str]:
    """Return which names in the list of files of a receipt it cannot cover, a sentence each.

    ``kind``: the receipt's; a script's run has other files than the others.
    """
    if kind == script_claims.KIND:
        added = [name for name in names if not is_script_file(name)]
    else:
        top = {*COVERED}
        added = [name for name in names if name not in top and "/" not in name]
        added += [name for name in names if "/" in name and not is_run_file(name)]
    return [
        f"the receipt lists {name!r}, which is not a file that receipts cover"
        for name in added[:MAX_PROBLEMS]
    ]


def check_run_files(run: Path, *, finished: bool = True) -> list[str]:
    """Return what a run folder holds and must not hold, a sentence each; open none of it.

    Example:
        >>> check_run_files(Path("runs/demo"))
        []
    """
    return sorted(islice(_list_problems(run, finished), MAX_PROBLEMS)) or _check_holes(run)


def _list_problems(run: Path, finished: bool) -> Iterator[str]:
    for entry in _scan(run):
        if entry.name != CHECKPOINT_FOLDER or not entry.is_dir(follow_symlinks=False):
            yield from _check_entry(entry, entry.name, finished)
            continue
        empty = True
        for inner in _scan(run / CHECKPOINT_FOLDER):
            empty = False
            yield from _check_entry(inner, f"{CHECKPOINT_FOLDER}/{inner.name}", finished)
        if finished and empty:
            yield f"{CHECKPOINT_FOLDER} is empty: a finished run has the checkpoint of its end"


def _check_entry(entry: os.DirEntry[str], name: str, finished: bool) -> Iterator[str]:
    """Yield what is wrong with one entry, if anything: its kind, or its name."""
    kind = None
    if entry.is_symlink():
        kind = "a symbolic link"
    elif entry.is_dir(follow_symlinks=False):
        kind = "a folder"
    elif not entry.is_file(follow_symlinks=False):
        kind = "a pipe, a socket or a device"
    if kind is not None:
        yield f"{name!r} is {kind}, where a run has plain files only: it was added; move it away"
    elif not is_run_file(name, finished=finished):
        yield f"{name!r} is not a file of a run: it was added; move it away"


def _check_holes(run: Path) -> list[str]:
    """Return a sentence where the files of a run are far larger than what is stored of them.

    A file system that compresses stores less than a file's size, too, but not less than half.
    """
    entries = [*_scan(run)]
    if any(entry.name == CHECKPOINT_FOLDER for entry in entries):
        entries += _scan(run / CHECKPOINT_FOLDER)
    found = [entry.stat(follow_symlinks=False) for entry in entries if entry.is_file()]
    size = sum(one.st_size for one in found)
    stored = sum(512 * one.st_blocks for one in found)
    if size - stored <= max(MAX_HOLES, stored):
        return []
    return [
        f"the files claim {size:,} bytes, and {stored:,} are stored: they have holes, which no run "
        "writes. If your file system compresses, copy the run to another one"
    ]


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise RunError(f"cannot read {folder}: {error.strerror}") from None
