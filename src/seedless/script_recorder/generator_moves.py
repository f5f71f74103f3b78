"""Which generator of torch an operation drew from: the one whose state it moved."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .flags import is_cuda_used
from .op_recorder import OpCall

TORCH_NAMESPACES = ("aten", "prims", "prim", "c10d", "_c10d_functional", "profiler", "higher_order")
OWN_GENERATOR = "torch-generator"  # one that the script made


class GeneratorState(NamedTuple):
    """A generator and its state at one time."""

    name: str
    generator: torch.Generator
    state: Tensor


def read_states(call: OpCall) -> list[GeneratorState]:
    """Return the states of the generators that an operation may draw from; often none.

    What an operation of the script's own does inside is not recorded, and its schema does not tell.
    """
    if not call.signature.drawing and call.func.namespace in TORCH_NAMESPACES:
        return []
    generators = _list_default_generators()
    given: Any = call.arguments.get("generator")
    if isinstance(given, torch.Generator) and given not in generators.values():
        generators[OWN_GENERATOR] = given
    return [GeneratorState(name, one, one.get_state()) for name, one in generators.items()]


def name_moved(before: list[GeneratorState]) -> str:
    """Return the name of the first generator whose state has changed, or ""."""
    for name, generator, state in before:
        if not torch.equal(state, generator.get_state()):
            return name
    return ""


def _list_default_generators() -> dict[str, torch.Generator]:
    generators = {"torch": torch.default_generator}
    if is_cuda_used():
        generators.update(
            {f"cuda:{index}": one for index, one in enumerate(torch.cuda.default_generators)}
        )
    return generators
