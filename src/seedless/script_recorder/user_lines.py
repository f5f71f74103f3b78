"""Find the line of the user's own code that led to an event."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from functools import cache
from types import CodeType, FrameType
from typing import Callable  # Python 3.9 runs this file too

_START_FOLDER = os.getcwd()
_RECORDER = os.path.dirname(os.path.abspath(__file__))
_STANDARD_LIBRARY = tuple(
    os.path.realpath(folder) + os.sep
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
)
_INSTALLED = tuple(
    os.path.realpath(folder) + os.sep
    for folder in {
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        *(site.getsitepackages() if hasattr(site, "getsitepackages") else ()),
    }
)
_INSTALLED_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_COMPILER_PARTS = ("/torch/_inductor/", "/torch/_dynamo/convert_frame.py")

# `python -c` and a script on standard input have no file.
_WITHOUT_FILE = ("<string>", "<stdin>")


@cache
def is_installed(path: str) -> bool:
    """Return whether a file belongs to the standard library, a package or the recorder."""
    full = os.path.abspath(path)
    return _has_installed_name(full) or _has_installed_name(os.path.realpath(full))  # the slow one


def _has_installed_name(path: str) -> bool:
    if any(part in path for part in (*_INSTALLED_PARTS, "/torchinductor_")):
        return True
    return path.startswith((*_STANDARD_LIBRARY, *_INSTALLED, _RECORDER + os.sep))


@cache
def is_standard_library(path: str) -> bool:
    """Return whether a file belongs to Python itself."""
    if path.startswith("<frozen"):
        return True
    real = os.path.realpath(path)
    return real.startswith(_STANDARD_LIBRARY) and not any(part in real for part in _INSTALLED_PARTS)


@cache
def show_path(path: str) -> str:
    """Return a path relative to the folder the process started in, where it is inside."""
    full = os.path.abspath(path)
    inside = full.startswith(_START_FOLDER.rstrip(os.sep) + os.sep)
    return os.path.relpath(full, _START_FOLDER) if inside else full


@cache
def _classify(filename: str) -> str:
    """Return "user", "text" for code without a file, or "other"."""
    if filename.startswith("<"):
        return "text" if filename in _WITHOUT_FILE else "other"
    return "other" if is_installed(filename) else "user"


def find_user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's own code, from the given one outwards."""
    without_file = None
    while frame is not None:
        kind = _classify(frame.f_code.co_filename)
        if kind == "user":
            return frame
        if kind == "text" and without_file is None:
            without_file = frame
        frame = frame.f_back
    return without_file


def is_for_itself(frame: FrameType | None) -> bool:
    """Return whether a package does this for itself: while it is imported, or compiles code."""
    while frame is not None and _classify(frame.f_code.co_filename) != "user":
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or any(part in file for part in _COMPILER_PARTS):
            return True
        frame = frame.f_back
    return False


def find_user_line(frame: FrameType | None = None) -> str:
    """Return "path:line" of the innermost frame of the user's own code, or ""."""
    found = find_user_frame(frame or sys._getframe(1))
    return "" if found is None else show_frame(found.f_code, found.f_lineno)


def find_maker_line(is_part: Callable[[object], bool]) -> str:
    """Return the line of the user's code that makes an object, and not of the object's own methods.

    Args:
        is_part: whether an object is one whose methods are passed over, as a module in a model.

    A model draws its weights in its `__init__`; whoever wants to seed before it needs the line that
    calls it.
    """
    found = frame = find_user_frame(sys._getframe(1))
    while frame is not None:
        outer = find_user_frame(frame.f_back)
        is_method = frame.f_code.co_varnames[:1] == ("self",)
        if is_method and outer is not None and is_part(frame.f_locals.get("self")):
            found = outer
        frame = outer
    return "" if found is None else show_frame(found.f_code, found.f_lineno)


def show_frame(code: CodeType, line: int) -> str:
    """Return "path:line" of a place in the user's code."""
    file = code.co_filename
    return f"{file if file.startswith('<') else show_path(file)}:{line}"
