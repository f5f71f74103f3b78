"""A guard over the global random generators: a run without a seed must not use any of them."""

import random
from typing import Any

import numpy as np

from seedless.core.errors import NumericsError


class GeneratorGuard:
    """Records the state of torch's, numpy's and Python's global generators when it is made.

    Example:
        >>> guard = GeneratorGuard()
        >>> loss = model(x).sum()
        >>> guard.check("in the forward pass")  # raises where a global generator was used
    """

    def __init__(self) -> None:
        self._start = _read_states()

    def moved(self) -> tuple[str, ...]:
        """Return the names of the generators whose state changed since the guard was made."""
        now = _read_states()
        return tuple(name for name in now if now[name] != self._start.get(name, now[name]))

    def check(self, where: str) -> None:
        """Raise NumericsError where a generator was used; ``where`` completes the message."""
        if moved := self.moved():
            raise NumericsError(
                f"expected no global generator to be used, but {' and '.join(moved)} moved "
                f"{where}, so the same bits cannot be promised: make the model's draws seed-free "
                "with seedless.convert(model), or use seedless.Dropout in place of nn.Dropout "
                "(and of dropout arguments), and draw augmentation inside seedless.augment(index) "
                "(docs/how-to/seed-free-script.md)"
            )


def _read_states() -> dict[str, Any]:
    """Return the state of each global generator as a value that can be compared."""
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
