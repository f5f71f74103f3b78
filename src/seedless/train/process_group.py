"""A group of processes that train one run together, and what they exchange besides gradients.

What is exchanged is bytes, never pickled objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor

from seedless.core.errors import RunError, SeedlessError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store


@dataclass(frozen=True, eq=False)
class TrainingGroup:
    """The processes that train a run, as one of them sees them.

    Attributes:
        rank: the number of this process, from 0; the first one writes the run.
        size: how many processes there are.
        messages: torch's group over gloo, for what is in the host's memory.
        sums: torch's group for the gradients; over NCCL where each process has a GPU of its own.
        store: the key-value store at which the processes met.
        devices: of each process, what it computes on: "cpu", or a GPU's name.
        threads: how many threads this process may use, if the machine is shared evenly.
    """

    rank: int
    size: int
    messages: dist.ProcessGroup
    sums: dist.ProcessGroup
    store: Store
    devices: tuple[str, ...]
    threads: int

    @property
    def is_first(self) -> bool:
        """Whether this process writes the run and prints."""
        return self.rank == 0

    @property
    def backend(self) -> str:
        """What carries the gradients: "gloo" or "nccl"."""
        return str(dist.get_backend(self.sums))


def exchange_bytes(messages: dist.ProcessGroup, content: bytes) -> list[bytes]:
    """Return the content of every process, by rank; each process calls it with its own."""
    processes = dist.get_world_size(messages)
    own = torch.frombuffer(bytearray(content or b"\0"), dtype=torch.uint8)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(processes)]
    dist.all_gather(lengths, torch.tensor([len(content)]), group=messages)
    counts = [int(length) for length in lengths]
    padded = torch.zeros(max(1, *counts), dtype=torch.uint8)
    padded[: len(content)] = own[: len(content)]
    parts = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(parts, padded, group=messages)
    return [part[:count].numpy().tobytes() for part, count in zip(parts, counts, strict=True)]


def exchange_values(messages: dist.ProcessGroup, value: Any) -> list[Any]:
    """Return the value of every process, by rank: any that JSON can hold."""
    return [json.loads(text) for text in exchange_bytes(messages, json.dumps(value).encode())]


def take_turns(items: Sequence[Any], group: TrainingGroup | None) -> Sequence[Any]:
    """Return the items that this process works on: every one without a group."""
    return items if group is None else items[group.rank :: group.size]


def join_values(own: Sequence[Any], group: TrainingGroup | None) -> list[Any]:
    """Return what all processes found for items that they took in turns, in the items' order."""
    if group is None:
        return list(own)
    return _interleave(exchange_values(group.messages, list(own)))


def join_tensors(own: Sequence[Tensor], group: TrainingGroup | None) -> list[Tensor]:
    """Return the tensors, on the CPU, of items that the processes took in turns."""
    if group is None:
        return list(own)
    named = {str(place): tensor.cpu().contiguous() for place, tensor in enumerate(own)}
    found: list[Mapping[str, Tensor]] = [
        load(content) for content in exchange_bytes(group.messages, save(named))
    ]
    return _interleave([[part[str(place)] for place in range(len(part))] for part in found])


def _interleave(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Return item 0 of every part, then item 1, and so on."""
    count = sum(map(len, parts))
    return [parts[place % len(parts)][place // len(parts)] for place in range(count)]


def is_any(flag: bool, group: TrainingGroup) -> bool:
    """Return whether the flag is true in any process."""
    found = torch.tensor([int(flag)])
    dist.all_reduce(found, op=dist.ReduceOp.MAX, group=group.messages)
    return bool(found)


@contextmanager
def fail_together(group: TrainingGroup | None) -> Iterator[None]:
    """Let a refusal in one process end the block with an error in all, which names the process."""
    error: SeedlessError | None = None
    try:
        yield
    except SeedlessError as found:
        if group is None:
            raise
        error = found
    if group is None:
        return
    reasons = exchange_values(group.messages, None if error is None else str(error))
    if error is not None:
        raise error
    for rank, reason in enumerate(reasons):
        if reason is not None:
            raise RunError(f"process {rank} of {group.size} failed: {reason}")


def describe_processes(group: TrainingGroup | None) -> dict[str, Any]:
    """Return what a receipt says of the processes that a run was finished on."""
    if group is None:
        return {"count": 1}
    return {"count": group.size, "backend": group.backend, "devices": list(group.devices)}
