"""Which module call is the outermost one: the only one whose input and output are recorded."""

from __future__ import annotations

from typing import Any


class OutermostCall:
    """A call of a module that no other module made, or a backward pass.

    There is one at a time, over all threads: what the replicas of a parallel model call, or what a
    backward pass computes again, belongs to a call that is already recorded.

    Attributes:
        is_under_way: whether there is such a call now.
        inputs: digests of what it was given.
    """

    def __init__(self) -> None:
        self.is_under_way = False
        self.inputs: list[Any] = []
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        self.is_under_way = True
        self.inputs = []

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        self.is_under_way = self._depth > 0
