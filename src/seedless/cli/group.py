"""What the commands share that run on several processes: `--processes N`, torchrun and srun."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seedless.core.config import Config
    from seedless.train.process_group import TrainingGroup

Processes = Annotated[
    int,
    typer.Option("--processes", min=1, max=1024, help="Train on N processes of this machine."),
]


def start_processes(config: Config, processes: int, arguments: Sequence[str]) -> None:
    """Run a command in so many processes, and end this one as they ended; return for one."""
    from seedless.core.errors import ConfigError
    from seedless.core.local_group import run_processes
    from seedless.core.rendezvous import check_group_settings, find_place

    if processes == 1:
        return
    if find_place(os.environ) is not None:
        raise ConfigError(
            f"--processes is {processes}, but torchrun or srun has started several processes: "
            "leave --processes out"
        )
    check_group_settings(config, processes)
    sys.exit(run_processes(arguments, processes))


@contextmanager
def join_processes(config: Config) -> Iterator[TrainingGroup | None]:
    """Yield the group that this process belongs to; None for one by itself."""
    import torch.distributed as dist

    from seedless.core.local_group import end_with_parent, is_local_member
    from seedless.runs.group import open_group

    if is_local_member():
        end_with_parent()
    with open_group(config) as group:
        yield group
    if group is not None:
        dist.destroy_process_group()
