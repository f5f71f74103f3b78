"""The line of a user's program that draws random numbers, and the module it belongs to."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from types import FrameType

import torch
from torch import nn

_TORCH = str(Path(torch.__file__).parent)
_SEEDLESS = str(Path(__file__).parent.parent)
_LIBRARIES = (_TORCH, _SEEDLESS, "<frozen")
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = ("site-packages", "dist-packages")  # folders inside that of the standard library


def is_of_library(file: str) -> bool:
    """Whether a source file is torch's, this package's or the standard library's."""
    is_standard = file.startswith(_STANDARD) and not any(name in file for name in _INSTALLED)
    return is_standard or file.startswith(_LIBRARIES)


def find_line(frame: FrameType | None = None) -> str:
    """Return file:line of the innermost frame that is no library's, of `is_of_library`."""
    current: FrameType | None = frame or sys._getframe(1)
    while current is not None:
        if not is_of_library(current.f_code.co_filename):
            return f"{current.f_code.co_filename}:{current.f_lineno}"
        current = current.f_back
    return "an unknown line"


def find_module(frame: FrameType, model: nn.Module) -> str | None:
    """Return the name in ``model`` of the innermost module that a frame was called by."""
    names: dict[int, str] = {id(module): name for name, module in model.named_modules()}
    current: FrameType | None = frame
    while current is not None:
        caller = id(current.f_locals.get("self"))
        if caller in names:
            return names[caller]
        current = current.f_back
    return None
