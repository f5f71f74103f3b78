"""Where a process stands in a group, and where the group meets, as its launcher's variables say.

Three launchers: `seedless train --processes N` (one machine), torchrun, and Slurm's srun.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seedless.core.errors import ConfigError
from seedless.core.processes import MEETING_FILE

if TYPE_CHECKING:
    from seedless.core.config import Config

_FIRST_PORT, _PORTS = 20_000, 20_000  # where the processes of a Slurm step meet


@dataclass(frozen=True)
class Place:
    """The place of a process in a group.

    Attributes:
        rank: its number, from 0.
        size: how many processes there are, at least 2.
        address: where they meet, as `torch.distributed.init_process_group` takes it.
    """

    rank: int
    size: int
    address: str

    @property
    def is_first(self) -> bool:
        """Whether this process writes the run and prints."""
        return self.rank == 0


def find_place(variables: Mapping[str, str]) -> Place | None:
    """Return the place of the process with these environment variables; None for one by itself.

    >>> find_place({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "29500"})
    Place(rank=1, size=4, address='env://')
    >>> find_place({}) is None
    True
    """
    if "RANK" in variables and "WORLD_SIZE" in variables:  # torchrun, or our own launcher
        rank, size = _read(variables, "RANK"), _read(variables, "WORLD_SIZE")
        file = variables.get(MEETING_FILE)
        address = "env://" if file is None else f"file://{file}"
    elif "SLURM_PROCID" in variables and "SLURM_STEP_NUM_TASKS" in variables:
        # SLURM_NTASKS also exists in a batch script, where only one process runs.
        rank, size = _read(variables, "SLURM_PROCID"), _read(variables, "SLURM_STEP_NUM_TASKS")
        address = _find_slurm_address(variables)
    else:
        return None
    if not 0 <= rank < size:
        raise ConfigError(
            f"expected a process number below the number of processes, got {rank} of {size}: start "
            "the processes with torchrun, srun or --processes"
        )
    return None if size == 1 else Place(rank, size, address)


def is_first_process() -> bool:
    """Whether this process writes and prints: the first of a group, or one by itself."""
    place = find_place(os.environ)
    return place is None or place.is_first


def _read(variables: Mapping[str, str], name: str) -> int:
    text = variables[name]
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ConfigError(f"expected a number in the environment variable {name}, got {text!r}")
    return int(text)


def _find_slurm_address(variables: Mapping[str, str]) -> str:
    """Return the first machine of a Slurm step, and a port that depends on the job and the step."""
    host = variables.get("MASTER_ADDR") or find_first_host(
        variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_NODELIST", "")
    )
    if not host:
        raise ConfigError("Slurm names no machine of this step: set MASTER_ADDR to its first one")
    if "MASTER_PORT" in variables:
        return f"tcp://{host}:{_read(variables, 'MASTER_PORT')}"
    steps = [int(variables.get(name, "0")) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")]
    return f"tcp://{host}:{_FIRST_PORT + sum(steps) % _PORTS}"


def find_first_host(machines: str) -> str:
    """Return the first machine of a list in Slurm's notation.

    >>> find_first_host("gpu[003-005,9],login1")
    'gpu003'
    """
    match = re.match(r"([^\[,]*)(?:\[([0-9]+)[^\]]*\]([^,]*))?", machines)
    return "" if match is None else "".join(part or "" for part in match.groups())


def check_group_settings(config: Config, size: int) -> None:
    """Refuse settings that a run on several processes cannot have."""
    if not config.is_portable:
        raise ConfigError(
            f"execution.arithmetic is {config.execution.arithmetic}, and {size} processes were "
            "started: in native arithmetic every number of processes has other bits, because sums "
            "over the batch round in another order. Set execution.arithmetic to portable, or train "
            "on one process (without --processes, torchrun and srun)"
        )
    if config.train.microbatch is not None:
        raise ConfigError(
            f"train.microbatch is {config.train.microbatch}, and {size} processes were started: "
            "each computes its part of a batch at once. Leave train.microbatch out, and start more "
            "processes if their parts do not fit into memory"
        )
