"""The command of a script's run: as a receipt states it, and as it may be executed again.

A receipt can come from anyone. What is executed is therefore not what it says, but a Python script
or module of the verifier's own folder, whose digest the receipt names, with the verifier's own
interpreter; of the receipt come the arguments, which are shown first. Everything else is refused.
"""

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import shorten
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError
from seedless.proof.script_claims import is_inner_path

MAX_SHOWN = 4_000  # characters of a command
_PYTHON = re.compile(r"python([0-9]+(\.[0-9]+)*)?")
_TORCHRUN = "torch.distributed.run"
# Options of Python that change nothing about which code is executed.
_PYTHON_OPTIONS = frozenset({"-u", "-B", "-O", "-OO", "-q", "-s"})
# Options of torchrun that say how many processes there are and where they meet.
_TORCHRUN_FLAGS = frozenset({"--standalone"})
_TORCHRUN_VALUES = frozenset(
    {"--nproc_per_node", "--nnodes", "--node_rank", "--master_addr", "--master_port"}
)
_TORCHRUN_VALUE = re.compile(r"[A-Za-z0-9_.]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def describe_command(command: Sequence[str], folder: Path) -> list[str]:
    """Return a command as a receipt states it, without places of this machine.

    The program is named without its folder, any Python is called "python", and `torchrun` is the
    module that it is. A path in the working folder is relative to it.

    Example:
        >>> describe_command(["/usr/bin/python3", "/home/me/x/train.py"], Path("/home/me/x"))
        ['python', 'train.py']
    """
    name = os.path.basename(command[0])
    program = [name]
    if _PYTHON.fullmatch(name):
        program = ["python"]
    elif name == "torchrun":
        program = ["python", "-m", _TORCHRUN]
    return [*program, *(_make_relative(word, folder) for word in command[1:])]


def plan_execution(
    script: Mapping[str, Any], data: Collection[str], python: str
) -> tuple[list[str], str]:
    """Return the command to execute for a receipt, and its main source file; refuse any other.

    Args:
        script: the receipt's field of that name, which was validated.
        data: the paths of the files that it read.
        python: the interpreter that the verifier chose.
    """
    # [Step 1] It must begin with Python, which the verifier replaces by an interpreter of theirs.
    command, sources = script["command"], script["sources"]
    if not _PYTHON.fullmatch(command[0]):
        raise refuse(command, f"it begins with {command[0]!r}, and only Python is executed")
    words = command[1:]
    while words and words[0] in _PYTHON_OPTIONS:
        words = words[1:]
    # [Step 2] torchrun starts a script of ours, too, once its options are known.
    if words[:2] == ["-m", _TORCHRUN]:
        words = _skip_torchrun_options(command, words[2:])
    # [Step 3] Then comes a file or a module whose source code the verifier has.
    if words[:1] == ["-m"] and len(words) > 1:
        main = _find_module(words[1], sources)
        arguments = words[2:]
    else:
        name = words[0] if words and not words[0].startswith("-") else ""
        main = os.path.normpath(name) if name else None
        arguments = words[1:]
    if main is None or main not in sources:
        raise refuse(command, "what it executes is not among the sources that its receipt lists")
    # [Step 4] The arguments must not lead to other places than to the data.
    for argument in arguments:
        if place := _find_foreign_place(argument, data):
            raise refuse(
                command,
                f"the argument {argument!r} leads to {place!r}, outside the scratch folder, and "
                "none of its data are there",
            )
    return [python, *command[1:]], main


def show_command(command: Sequence[str]) -> str:
    """Return a command as one line of visible characters, to be typed or read."""
    return shorten(escape_text(shlex.join(command)), MAX_SHOWN)


def refuse(command: Sequence[str], why: str) -> ConfigError:
    """Return the error for a command that is not executed."""
    return ConfigError(
        f"the command `{show_command(command)}` is not executed: {why}. If you trust it, run it "
        "yourself with `seedless run`, and compare the two runs with `seedless diff`"
    )


def _make_relative(word: str, folder: Path) -> str:
    """Return an argument with a path in the working folder made relative to it."""
    option, equals, path = word.partition("=") if word.startswith("-") else ("", "", word)
    if not path.startswith(f"{folder}/"):
        return word
    return f"{option}{equals}{os.path.relpath(path, folder)}"


def _skip_torchrun_options(command: Sequence[str], words: Sequence[str]) -> Sequence[str]:
    """Return what follows the options of torchrun; an option that is not known is refused."""
    place = 0
    while place < len(words) and words[place].startswith("--"):
        option, equals, value = words[place].partition("=")
        option = option.replace("-", "_").replace("__", "--", 1)
        if option in _TORCHRUN_FLAGS and not equals:
            place += 1
            continue
        if not equals:
            value = words[place + 1] if place + 1 < len(words) else ""
        if option not in _TORCHRUN_VALUES or not _TORCHRUN_VALUE.fullmatch(value):
            raise refuse(command, f"{words[place]!r} is no option of torchrun that is known here")
        place += 1 if equals else 2
    return words[place:]


def _find_module(name: str, sources: Collection[str]) -> str | None:
    """Return the source file that `python -m` executes for a module in the working folder."""
    if not _MODULE.fullmatch(name):
        return None
    path = name.replace(".", "/")
    return next((one for one in (f"{path}/__main__.py", f"{path}.py") if one in sources), None)


def _find_foreign_place(argument: str, data: Collection[str]) -> str | None:
    """Return a path in an argument that leads out of the folder, and not to data; None if none."""
    for text in re.split(r"[=,;\s]", argument):
        if text.startswith(("/", "~", "file:")):
            place = os.path.normpath(text)
            inside = [path for path in data if path == place or path.startswith(f"{place}/")]
            if place == "/" or not inside:
                return text
        elif ".." in text.split("/") and not is_inner_path(text):
            return text
    return None
