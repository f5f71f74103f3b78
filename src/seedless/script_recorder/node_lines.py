"""The user's line that an operation belongs to, also in the backward pass.

Autograd numbers its nodes as the forward pass creates them, in each thread from 0. The numbers at
each forward operation say which line created which nodes.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from types import FrameType
from typing import Any

import torch

from .user_lines import find_user_frame, show_frame

# Their functions start autograd's engine: frames outside them are those that called `backward`.
_ENGINE_FILES = (torch.autograd.__file__, torch.autograd.graph.__file__)


class NodeLines:
    """The lines that created autograd nodes, by the numbers of the nodes."""

    def __init__(self) -> None:
        self._first = torch._C._autograd._get_sequence_nr()
        self._thread = threading.get_ident()
        self._numbers: list[int] = []
        self._lines: list[str] = []

    def find(self) -> str:
        """Return the line of the operation that is running now, and remember it for its nodes."""
        node: Any = torch._C._current_autograd_node()
        frame: FrameType | None = sys._getframe(1)
        found = find_user_frame(frame)
        line = "" if found is None else show_frame(found.f_code, found.f_lineno)
        if node is None:
            self.note(line)
            return line
        # [Step 1] The user's own backward function or hook, or a forward that is computed again;
        # or the sum of gradients, which belongs to no forward operation, but to `backward` itself.
        if node.name().endswith("AccumulateGrad") or _is_inside_backward(frame, found):
            return line
        # [Step 2] The forward operation that created the node.
        number = node._sequence_nr()
        position = bisect_right(self._numbers, number)
        known = number >= self._first and position < len(self._numbers)
        return self._lines[position] if known else ""

    def note(self, line: str) -> None:
        """Record that the nodes created since the last call belong to a line."""
        number = torch._C._autograd._get_sequence_nr()
        if self._thread == threading.get_ident() and number > max(self._numbers[-1:], default=-1):
            self._numbers.append(number)
            self._lines.append(line)


def _is_inside_backward(frame: FrameType | None, found: FrameType | None) -> bool:
    """Whether a frame of the user's was called by autograd's engine, and did not call it."""
    while frame is not None and frame is not found:
        if frame.f_code.co_filename in _ENGINE_FILES:
            return False
        frame = frame.f_back
    return found is not None
