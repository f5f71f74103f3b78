"""What the processes of a group do when one of them ends or hangs: say which, and end.

A process that fails writes why into the store at which the group met. One whose exchange fails
writes that it is alive, and waits a few seconds for the others to do so: who did not is missing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from seedless.core.errors import LostProcessError
from seedless.core.local_group import is_local_member
from seedless.portable.batch.collectives import is_failed_exchange
from seedless.train.process_group import TrainingGroup

WAIT_SECONDS = 5.0  # for the other survivors
_POLL_SECONDS = 0.1
_LINGER_SECONDS = 1.0  # that the process which may hold the store lets the others read it
_MAX_REASON = 1000


@contextmanager
def report_lost(group: TrainingGroup) -> Iterator[None]:
    """Turn the failure of an exchange into an error that names the processes at fault."""
    try:
        yield
    except RuntimeError as error:
        if not is_failed_exchange(error):
            write_reason(group, error)
            raise
        raise name_lost(group, str(error)) from None
    except Exception as error:
        write_reason(group, error)
        raise


def write_reason(group: TrainingGroup, error: Exception) -> None:
    """Write into the store why this process ends."""
    reason = (str(error) or type(error).__name__)[:_MAX_REASON]
    with suppress(RuntimeError):  # the store may be gone; the error itself is raised in any case
        group.store.set(f"failed/{group.rank}", reason)


def name_lost(group: TrainingGroup, reason: str) -> LostProcessError:
    """Return an error that names the processes that failed or are missing."""
    if is_local_member():  # the process that started this group sees which one ended first
        return LostProcessError(f"another process of {group.size} ended", reports_it=False)
    failed: dict[int, str] = {}
    alive = {group.rank}
    answered = threading.Event()
    # A thread, because a request to a store whose machine is gone can wait for minutes.
    details = (group, failed, alive, answered)
    inquiry = threading.Thread(target=_ask_store, args=details, daemon=True)
    inquiry.start()
    inquiry.join(2 * WAIT_SECONDS)
    missing = [rank for rank in range(group.size) if rank not in alive and rank not in failed]
    advice = "`seedless resume` continues the run from its last checkpoint, on any number of them"
    if failed:
        rank, why = min(failed.items())
        text = f"process {rank} of {group.size} failed: {why}"
    elif not answered.is_set():
        text = (
            f"process {group.rank} of {group.size} lost the others, and the store at which they "
            "met is gone: process 0 or its launcher has ended, or its machine cannot be reached. "
            f"{advice}"
        )
    elif missing:
        names = " and ".join(map(str, missing))
        text = f"process {names} of {group.size} ended or does not answer. {advice}"
    else:
        text = (
            f"the processes could not exchange their sums, and all {group.size} still run: "
            f"{reason}. Is one of them stuck? execution.timeout is how long they wait"
        )
    return LostProcessError(text, reports_it=group.rank == min(alive))


def _ask_store(
    group: TrainingGroup, failed: dict[int, str], alive: set[int], answered: threading.Event
) -> None:
    """Say that this process is alive, and collect who else is, and who failed and why."""
    with suppress(RuntimeError):  # the store is gone: what was collected so far counts
        group.store.set(f"alive/{group.rank}", "")
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until and len(alive) + len(failed) < group.size:
            for rank in {*range(group.size)} - alive - {*failed}:
                if group.store.check([f"failed/{rank}"]):
                    failed[rank] = group.store.get(f"failed/{rank}").decode(errors="replace")
                elif group.store.check([f"alive/{rank}"]):
                    alive.add(rank)
            time.sleep(_POLL_SECONDS)
        answered.set()
    if group.rank == 0:
        time.sleep(_LINGER_SECONDS)
