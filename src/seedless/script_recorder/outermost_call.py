"""Which module call is the outermost one: the only one whose input and output are recorded."""

from __future__ import annotations

import threading
from typing import Any


class OutermostCall:
    """The call of a module that no other module made.

    There is one at a time, over all threads: what the replicas of a parallel model call, or what a
    recomputation in the backward pass calls, belongs to a call that is already recorded. A call
    that raised never ends; the next batch, backward pass or step forgets it.

    Attributes:
        module: the module that was called, None outside every call.
        depth: how often that module is on the stack.
        in_backward: how many backward passes are under way.
    """

    def __init__(self) -> None:
        self.module: Any = None
        self.depth = 0
        self.in_backward = 0
        self._thread = 0
        self._inputs: Any = None

    def enter(self, module: Any, inputs: Any) -> None:
        """Begin a call with the digest of its inputs."""
        self.module, self.depth, self._inputs = module, 1, inputs
        self._thread = threading.get_ident()

    def is_of(self, module: Any) -> bool:
        """Return whether this thread's outermost call is a call of ``module``."""
        return self.module is module and self._thread == threading.get_ident()

    def leave(self) -> Any:
        """End the call; return the digest of its inputs."""
        inputs = self._inputs
        self.forget()
        return inputs

    def forget(self) -> None:
        """Be outside every call."""
        self.module, self.depth, self._inputs = None, 0, None
