"""The processes of a world: started, joined, and asked what they found."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def join(rank: int, size: int, backend: str, folder: str) -> None:
    """Join the world as one rank, with one thread."""
    torch.set_num_threads(1)
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    dist.init_process_group(
        backend, init_method=f"file://{folder}/store", rank=rank, world_size=size
    )


def run_world(target: Callable[..., None], size: int, *arguments: Any) -> list[Any]:
    """Start the ranks of a world and return what each wrote."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(target, (*arguments, folder), nprocs=size)
        return [json.loads(Path(folder, f"rank{rank}.json").read_text()) for rank in range(size)]
