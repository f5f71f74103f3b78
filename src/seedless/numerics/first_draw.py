"""The line and the module that use a global random generator first.

A call is executed under Python's tracing, and the states of the generators are compared at each
line. That takes seconds, and is done only once it is known that a generator was used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from torch import nn

from seedless.numerics.draw_line import find_module, is_of_library
from seedless.numerics.generator_guard import GeneratorGuard

_NUMPY = str(Path(np.__file__).parent)


@dataclass(frozen=True)
class FirstDraw:
    """The first use of a global generator.

    Attributes:
        generators: the names of the generators that moved.
        line: file:line of the innermost code that is no library's.
        module: the name of the innermost module of the model; None outside of its modules.
    """

    generators: tuple[str, ...]
    line: str
    module: str | None

    def __str__(self) -> str:
        where = "" if self.module is None else f", in module {self.module or 'the model'!r}"
        return f"at {self.line}{where}"


def find_first_draw(call: Callable[[], Any], model: nn.Module) -> FirstDraw | None:
    """Call something and return its first use of a global generator; None where it uses none.

    Draws in other threads, and inside compiled code, are not found. An error of the call ends it.

    >>> str(find_first_draw(lambda: model(x), model))
    "at model.py:12, in module 'encoder.noise'"
    """
    guard = GeneratorGuard()
    found: list[FirstDraw] = []
    last: list[tuple[FrameType, int]] = []  # the line that runs

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        if found:
            return None
        if last and (moved := guard.moved()):
            found.append(FirstDraw(moved, _name_line(*last[0]), find_module(last[0][0], model)))
            raise _FoundError
        last[:] = [(frame, frame.f_lineno)]
        if event == "return" and frame.f_back is not None:
            last[:] = [(frame.f_back, frame.f_back.f_lineno)]
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        call()
    except Exception:  # what is looked for is the draw; a second call may fail by itself
        pass
    finally:
        sys.settrace(before)
    return found[0] if found else None


class _FoundError(Exception):
    """Ends the call once the first draw is found."""


def _name_line(frame: FrameType, line: int) -> str:
    """Return file:line of the innermost frame that is no library's."""
    current: FrameType | None = frame
    number = line
    while current is not None:
        file = current.f_code.co_filename
        if not is_of_library(file) and not file.startswith(_NUMPY):
            return f"{file}:{number}"
        current = current.f_back
        number = current.f_lineno if current is not None else 0
    return "an unknown line"
