"""Digests of the states of the global generators: Python's, numpy's and torch's."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch

from .flags import is_cuda_used
from .tensor_digest import digest_text, digest_value

MAX_DEVICES = 16


def read_states(generators: dict[str, Any]) -> dict[str, str]:
    """Return a digest of the state of each generator that exists; draws from none.

    Args:
        generators: further generators, of numpy or torch, by name.
    """
    states = {"python": _digest_python(), "torch": _digest_torch(torch.default_generator)}
    numpy = _digest_numpy()
    if numpy is not None:
        states["numpy"] = numpy
    if is_cuda_used():
        for index, generator in enumerate(torch.cuda.default_generators[:MAX_DEVICES]):
            states[f"cuda:{index}"] = _digest_torch(generator)
    for name, other in generators.items():
        is_torch = isinstance(other, torch.Generator)
        states[name] = _digest_torch(other) if is_torch else _digest_numpy_generator(other)
    return states


def _digest_python() -> str:
    version, words, gauss = random.getstate()
    # The hash of a tuple of integers is the same in every process.
    return digest_text(f"{version} {hash(words)} {gauss!r}")


def _digest_numpy() -> str | None:
    module: Any = sys.modules.get("numpy.random.mtrand")
    if module is None:
        return None
    state = module._rand.get_state(legacy=False)
    return str(digest_value(state))


def _digest_numpy_generator(generator: Any) -> str:
    return str(digest_value(generator.bit_generator.state))


def _digest_torch(generator: torch.Generator) -> str:
    return str(digest_value(generator.get_state()))
