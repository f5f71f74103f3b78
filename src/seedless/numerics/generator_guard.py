"""A guard over the global generators: in a run without a seed, none of them may move."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from seedless.core.errors import NumericsError


class GeneratorGuard:
    """Remembers where torch's, numpy's and Python's global generators stand."""

    def __init__(self) -> None:
        self._start = _capture()

    def moved(self) -> tuple[str, ...]:
        """Return the names of the generators that moved since the guard was set."""
        now = _capture()
        return tuple(name for name in now if now[name] != self._start.get(name, now[name]))

    def check(self, where: str) -> None:
        """Refuse to go on where one has moved."""
        if moved := self.moved():
            raise NumericsError(
                f"expected no global generator to be used, but {' and '.join(moved)} moved "
                f"{where}, so the same bits cannot be promised: use seedless.Dropout in place "
                "of nn.Dropout (and of dropout arguments), and draw augmentation from sample keys "
                "(docs/how-to/dropout.md)"
            )


def _capture() -> dict[str, Any]:
    """Return the state of each global generator as something that can be compared."""
    import torch

    numpy_state: Any = np.random.get_state(legacy=False)
    words = numpy_state["state"]["key"].tobytes()
    states: dict[str, Any] = {
        "Python's random": random.getstate(),
        "numpy's np.random": (words, numpy_state["state"]["pos"], numpy_state["has_gauss"]),
        "torch's CPU generator": torch.get_rng_state().numpy().tobytes(),
    }
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # untyped in torch
        for index, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"torch's CUDA generator {index}"] = state.numpy().tobytes()
    return states
