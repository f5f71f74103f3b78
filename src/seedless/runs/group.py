"""Join the group of processes that train a run, check that they agree, and leave it.

    place (core/rendezvous.py) -> join_group -> configure_member -> check_agreement -> train

The engine is torch.distributed: gloo for messages, and for gradients unless every process has a GPU
of its own; then gradients travel over NCCL.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from seedless.core.config import Config, ExecutionConfig
from seedless.core.errors import ConfigError, RunError
from seedless.core.mismatch import compare_values
from seedless.core.rendezvous import Place, check_group_settings, find_place
from seedless.core.threads import list_usable_cores
from seedless.proof.trail import describe_beginning
from seedless.runs.lost_processes import report_lost
from seedless.runs.prepare import Prepared, Preparer
from seedless.train.process_group import TrainingGroup, exchange_values, fail_together

TIMEOUT_SECONDS = 600  # that a process waits for the others, where execution.timeout says nothing
REFUSED = 2  # the exit code of a process that ends with a message
_GRACE_SECONDS = 15.0  # after the timeout, in which torch itself may say what is wrong
_SHOWN_PROCESSES = 3  # of a group in which many differ
_ON_FUNCTIONS = (
    ". The values of the global and closure variables that a function uses are part of it: let it "
    "use none that differ between processes, as the rank or a device do"
)


@contextmanager
def open_group(config: Config) -> Iterator[TrainingGroup | None]:
    """Yield the group that this process's launcher made it part of; None for one by itself.

    Inside the block, the failure of another process becomes an error that names it.
    """
    place = find_place(os.environ)
    if place is None and dist.is_available() and dist.is_initialized():
        size = dist.get_world_size()  # the script joined a group by other means
        place = Place(dist.get_rank(), size, "") if size > 1 else None
    if place is None:
        yield None
        return
    check_group_settings(config, place.size)
    group = join_group(place, config.execution)
    with report_lost(group):
        yield group
    # After a failure nothing is destroyed: torch would wait for the process that is gone.
    for handle in {group.sums, group.messages}:
        with suppress(RuntimeError):  # the run is finished whatever the others do now
            dist.destroy_process_group(handle)


def _check_address(place: Place) -> None:
    """Refuse a process that cannot know where to meet the others: it need not wait for them."""
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if place.address == "env://" and missing:
        raise ConfigError(
            f"process {place.rank} of {place.size} does not know where to meet the others: RANK "
            f"and WORLD_SIZE are set, {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not. Start the processes with torchrun or "
            "--processes, or set MASTER_ADDR to the machine of process 0 and MASTER_PORT to a free "
            "port of it"
        )
    if place.address.startswith("tcp://"):
        host = place.address.removeprefix("tcp://").rpartition(":")[0]
    else:
        host = os.environ.get("MASTER_ADDR", "") if place.address == "env://" else ""
    try:
        socket.getaddrinfo(host or None, 0)
    except OSError as error:
        raise ConfigError(
            f"process {place.rank} of {place.size} cannot find the machine {host!r}, where it "
            f"should meet the others: {error.strerror}. Set MASTER_ADDR to the name or address of "
            "the machine of process 0"
        ) from None


@contextmanager
def _end_if_nobody_answers(place: Place, timeout: timedelta) -> Iterator[None]:
    """End this process where torch waits without end: another program has the port of process 0."""

    def end() -> None:
        sys.stderr.write(
            f"error: process {place.rank} of {place.size} could not meet the others within "
            f"{timeout.total_seconds():.0f} s (execution.timeout). Are MASTER_ADDR and MASTER_PORT "
            "those of process 0, and does no other program use that port?\n"
        )
        sys.stderr.flush()
        os._exit(REFUSED)

    timer = threading.Timer(timeout.total_seconds() + _GRACE_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def join_group(place: Place, execution: ExecutionConfig) -> TrainingGroup:
    """Meet the other processes; return the group. Every process must call it."""
    from torch._C._distributed_c10d import PrefixStore  # not in every build of torch

    # [Step 1] Meet. A script may have done so already.
    timeout = timedelta(seconds=execution.timeout or TIMEOUT_SECONDS)
    if not dist.is_initialized():
        _check_address(place)
        try:
            with _end_if_nobody_answers(place, timeout):
                dist.init_process_group(
                    "gloo",
                    init_method=place.address,
                    rank=place.rank,
                    world_size=place.size,
                    timeout=timeout,
                )
        except (RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            advice = (
                "Another program has this port: set MASTER_PORT to a free one, alike on all "
                "processes"
                if "EADDRINUSE" in reason
                else "Do all of them run, and can they reach the first one? They wait for each "
                f"other for {timeout.total_seconds():.0f} s (execution.timeout)"
            )
            raise RunError(
                f"process {place.rank} of {place.size} could not meet the others: {reason}. "
                f"{advice}"
            ) from None
    messages = dist.new_group(backend="gloo", timeout=timeout)
    # [Step 2] Say who computes where; the processes of a machine take its GPUs in turn.
    own: dict[str, Any] = {"host": socket.gethostname(), "cores": list_usable_cores()}
    members = exchange_values(messages, own)
    here = [rank for rank, member in enumerate(members) if member["host"] == own["host"]]
    uses_gpu = execution.device != "cpu" and torch.cuda.is_available()
    device, card = "cpu", None
    if uses_gpu:
        number = here.index(place.rank) % torch.cuda.device_count()
        torch.cuda.set_device(number)
        properties = torch.cuda.get_device_properties(number)
        device, card = properties.name, str(properties.uuid)
    found = exchange_values(messages, {"device": device, "card": card})
    # [Step 3] NCCL where each process has a GPU of its own. It refuses two processes on one GPU.
    cards = {member["card"] for member in found}
    sums = messages
    if None not in cards and len(cards) == place.size and dist.is_nccl_available():
        sums = dist.new_group(backend="nccl", timeout=timeout)
    return TrainingGroup(
        rank=place.rank,
        size=place.size,
        messages=messages,
        sums=sums,
        store=PrefixStore(
            f"seedless/{messages.group_name}", dist.distributed_c10d._get_default_store()
        ),
        devices=tuple(member["device"] for member in found),
        threads=share_cores(own["cores"], [members[rank]["cores"] for rank in here]),
    )


def share_cores(own: Sequence[int], members: Sequence[Sequence[int]]) -> int:
    """Return how many threads a process may use, given the cores of all processes of its machine.

    Slurm may give each of them cores of its own, and torchrun gives all of them the same.

    >>> share_cores([0, 1, 2, 3], [[0, 1, 2, 3], [0, 1, 2, 3]]), share_cores([0, 1], [[0, 1], [2]])
    (2, 2)
    """
    sharing = sum(bool({*own} & {*cores}) for cores in members)
    return max(1, len(own) // sharing)


def configure_member(config: Config, group: TrainingGroup | None) -> Config:
    """Return the configuration with what this process computes on; no bit depends on it."""
    if group is None:
        return config
    device = "cpu" if group.devices[group.rank] == "cpu" else "cuda"
    changes = {
        "device": device if config.execution.device == "auto" else config.execution.device,
        "mode": "eager",  # a CUDA graph cannot hold the exchange of sums
        "threads": config.execution.threads or group.threads,
    }
    # Not `config.change`, which would mark every setting as set by the user.
    return config.model_copy(update={"execution": config.execution.model_copy(update=changes)})


def join_run(prepared: Prepared, group: TrainingGroup | None) -> Prepared:
    """Return what was prepared as the part of this process in a group."""
    if group is None:
        return prepared
    return replace(prepared, problem=replace(prepared.problem, group=group))


def prepare_member(preparer: Preparer, group: TrainingGroup, config: Config) -> Prepared:
    """Return the part of this process in a run that a group executes again."""
    unbound = config.execution.model_copy(update={"threads": None})  # as many as there are here
    here = configure_member(config.model_copy(update={"execution": unbound}), group)
    with fail_together(group):
        prepared = join_run(preparer(here), group)
    facts = describe_beginning(prepared.config.digest, prepared.facts)
    check_agreement(group, facts, prepared.config)
    return prepared


def check_agreement(group: TrainingGroup | None, facts: Mapping[str, Any], config: Config) -> None:
    """Refuse a group in which a process has other settings, data, functions, code or packages.

    Args:
        facts: what the run begins with, as `describe_beginning` returns it.
        config: its settings, of which ``facts`` have the digest.
    """
    if group is None:
        return
    own = {name: value for name, value in facts.items() if name != "environment"}
    own["packages"] = facts["environment"]["packages"]
    own["settings"] = config.identity()
    # By role and name, so that a message says which function it is.
    own["callables"] = {
        f"{item['role']}={item['name']}": item["digest"] for item in facts.get("callables", [])
    }
    found = exchange_values(group.messages, own)
    differing = {
        rank: compare_values(found[0], other)[0]
        for rank, other in enumerate(found)
        if other != found[0]
    }
    if not differing:
        return
    shown = [
        f"{change.field} is {change.recorded} in process 0 and {change.here} in process {rank}"
        for rank, change in list(differing.items())[:_SHOWN_PROCESSES]
    ]
    is_function = any(change.field.startswith("callables.") for change in differing.values())
    raise RunError(
        f"expected {group.size} processes with the same settings, data, code and packages; "
        f"{len(differing)} of them differ from process 0: {'; '.join(shown)}. Start all of them "
        f"with the same command, files and versions{_ON_FUNCTIONS if is_function else ''}"
    )
