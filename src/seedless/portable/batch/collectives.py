"""What the processes of a group exchange: bytes of every rank, largest integers, sums of integers.

All three are exact in any order, so neither the number of ranks nor a library's algorithm can show
in the result. Over gloo everything goes through the host, so that CPUs and GPUs can be in one
group; over NCCL it stays on the GPU.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.batch.plain_torch import plain_torch

_LENGTH_BYTES = 8
_FIRST_CAPACITY = 4096  # bytes; grows with the first message that needs more
_BUCKET_ELEMENTS = 1 << 23  # int64 integers of one message: 64 MiB


class Collectives:
    """The exchanges of one group.

    Attributes:
        messages, bytes: how many collectives this rank took part in, and what it put into them.
    """

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise NumericsError(
                "expected a group of processes, got none: call torch.distributed."
                "init_process_group first (torchrun sets what it needs)"
            )
        _drop_default_groups()
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.messages = self.bytes = 0
        self._uses_host = "nccl" not in dist.get_backend(group)
        self._capacity = _FIRST_CAPACITY

    def gather(self, payload: Tensor) -> list[Tensor]:
        """Return the bytes of every rank, given those of this one: uint8 (n,), n by rank.

        One message, except when a rank has more bytes than any before.
        """
        device = self._find_device(payload)
        with plain_torch():
            length = torch.tensor([payload.numel()]).view(torch.uint8).to(device)
            while True:
                message = torch.zeros(
                    _LENGTH_BYTES + self._capacity, dtype=torch.uint8, device=device
                )
                message[:_LENGTH_BYTES] = length
                fits = payload.numel() <= self._capacity
                if fits:
                    message[_LENGTH_BYTES : _LENGTH_BYTES + payload.numel()] = payload.to(device)
                received = [torch.empty_like(message) for _ in range(self.size)]
                dist.all_gather(received, message, group=self.group)
                self._count(message)
                heads = torch.stack([each[:_LENGTH_BYTES] for each in received])
                lengths = heads.view(torch.int64).flatten().tolist()
                if max(lengths) <= self._capacity:
                    break
                self._capacity = max(lengths)
            return [
                each[_LENGTH_BYTES : _LENGTH_BYTES + n].to(payload.device)
                for each, n in zip(received, lengths, strict=True)
            ]

    def broadcast(self, tensors: Sequence[Tensor], source: int) -> list[Tensor]:
        """Return the tensors of rank ``source``; every rank passes some of the same shapes."""
        with plain_torch():
            out = []
            for tensor in tensors:
                copy = tensor.detach().to(self._find_device(tensor), copy=True).contiguous()
                dist.broadcast(copy, group=self.group, group_src=source)
                self._count(copy)
                out.append(copy.to(tensor.device))
            return out

    def find_largest(self, exponents: Sequence[Tensor], guard: int) -> list[Tensor]:
        """Return the element-wise maximum over all ranks of each int64 tensor.

        ``guard`` is a number below 2^31 that must be equal on all ranks; the message carries it and
        its negative, whose maxima cancel only then.
        """
        with plain_torch():
            first = exponents[0]
            words = torch.tensor([guard, -guard], device=first.device)
            message = torch.cat([words, *(each.reshape(-1) for each in exponents)])
            largest = self._reduce(message.to(torch.int32), dist.ReduceOp.MAX)
            if largest[:2].tolist() != [guard, -guard]:
                raise NumericsError(
                    "expected all processes of the group to compute the same step, got another "
                    "sum on another rank. Do all ranks have the same model, code and settings?"
                )
            return _split_like(largest[2:].to(torch.int64).to(first.device), exponents)

    def add(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum over all ranks of each tensor; all have one dtype, int64 or float64."""
        with plain_torch():
            out: list[Tensor] = []
            bucket: list[Tensor] = []
            for tensor in (*tensors, None):
                filled = sum(each.numel() for each in bucket)
                if bucket and (tensor is None or filled + tensor.numel() > _BUCKET_ELEMENTS):
                    message = torch.cat([each.reshape(-1) for each in bucket])
                    summed = self._reduce(message, dist.ReduceOp.SUM).to(bucket[0].device)
                    out.extend(_split_like(summed, bucket))
                    bucket = []
                if tensor is not None:
                    bucket.append(tensor)
            return out

    def _reduce(self, message: Tensor, op: dist.ReduceOp.RedOpType) -> Tensor:
        message = message.to(self._find_device(message))
        dist.all_reduce(message, op=op, group=self.group)
        self._count(message)
        return message

    def _find_device(self, tensor: Tensor) -> torch.device:
        """Return where a message is kept: on the host, or for NCCL on this rank's GPU."""
        if self._uses_host:
            return torch.device("cpu")
        if tensor.is_cuda:
            return tensor.device
        return torch.device("cuda", torch.cuda.current_device())

    def _count(self, message: Tensor) -> None:
        self.messages += 1
        self.bytes += message.numel() * message.element_size()


def _drop_default_groups() -> None:
    """Replace the default group by None, its other spelling, in arguments of torch's functions.

    Imported after init_process_group, torch.distributed.nn.functional holds the default group as
    a default argument. torch ends the threads of a group only when nothing refers to it, and a
    thread that still runs when Python ends aborts the process. The compiler of torch imports that
    module during the first traced step, so it is imported here before.
    """
    import torch.distributed.nn.functional as functions

    for function in vars(functions).values():
        defaults = getattr(function, "__defaults__", None) or ()
        if any(isinstance(value, dist.ProcessGroup) for value in defaults):
            function.__defaults__ = tuple(
                None if isinstance(value, dist.ProcessGroup) else value for value in defaults
            )


def is_failed_exchange(error: RuntimeError) -> bool:
    """Whether an error comes from torch.distributed. Those of gloo have no type of their own."""
    text = str(error)
    return isinstance(error, dist.DistError) or "gloo" in text or "pair closure" in text


def _split_like(flat: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the pieces of a flat tensor that have these shapes, in order."""
    pieces = torch.split(flat, [each.numel() for each in tensors])
    return [piece.view(each.shape) for piece, each in zip(pieces, tensors, strict=True)]
