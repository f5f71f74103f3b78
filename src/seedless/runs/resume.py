"""Continue a run that was killed or stopped, to the bits it would have had."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from seedless.core.config import Config, ExecutionConfig
from seedless.core.errors import ConfigError, RunError
from seedless.core.files import hash_file
from seedless.core.mismatch import compare_values
from seedless.core.registry import choose
from seedless.core.setting_choices import DEVICES
from seedless.data.splits import refuse_repeated
from seedless.numerics.environment_difference import compare_environments
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.run_files import check_run_files
from seedless.proof.trail import TrailWriter, describe_beginning
from seedless.runs.finished_run import Run
from seedless.runs.folder import clear_leftovers, lock, read_config
from seedless.runs.group import check_agreement, configure_member, join_run
from seedless.runs.initial_weights import use_recorded_name
from seedless.runs.prepare import Preparer, prepare
from seedless.runs.train import explain_memory, run_loop
from seedless.train.checkpoint import Checkpoint, find_last_checkpoint, list_checkpoints
from seedless.train.process_group import TrainingGroup, exchange_values, fail_together
from seedless.train.progress_state import Observer
from seedless.train.state_tensors import restore_state


def resume_run(
    run: Path,
    *,
    observers: Sequence[Observer] = (),
    stop: Callable[[], bool] = lambda: False,
    preparer: Preparer = prepare,
    warn: Callable[[str], None] = lambda _: None,
    device: str | None = None,
    group: TrainingGroup | None = None,
) -> Run:
    """Continue an unfinished run from its last intact checkpoint, or from the start without one.

    Args:
        run: the run folder.
        observers: as for `train_run`, and so are ``stop`` and ``preparer``.
        warn: called with one sentence for every damaged checkpoint that is skipped.
        device: "cpu", "cuda" or "auto", also another than the run began on if its arithmetic is
            portable.
        group: as for `train_run`. A run in portable arithmetic may be continued on another number
            of processes than it began on.

    Example:
        >>> resume_run(Path("runs/demo")).digest
    """
    writes = group is None or group.is_first
    with ExitStack() as stack:
        # [Step 1] Prepare the same problem again; the configuration must resolve as it did.
        with fail_together(group):
            config = read_unfinished(run)
            if writes:
                stack.enter_context(lock(run))
            here = configure_member(move_run(config, device, group is not None), group)
            with explain_memory(here):
                prepared = join_run(preparer(here), group)
            refuse_repeated(prepared.facts["data"], config.data, prepared.repeated_record)
            if prepared.config.digest != config.digest:
                raise RunError(
                    f"{run}: its configuration resolves to another one here; was it edited?"
                )
        facts = describe_beginning(config.digest, prepared.facts)
        check_agreement(group, facts, prepared.config)
        # [Step 2] Read the trail: the run must have begun with what is here now.
        trail = None
        with fail_together(group):
            if writes:
                clear_leftovers(run)
                trail = TrailWriter(run, facts)
                check_beginning(run, trail, prepared.config.execution)
        # [Step 3] Find the last intact checkpoint; drop the damaged ones after it, which this run
        # writes again.
        checkpoint, damages = find_last_checkpoint(run, config.digest)
        check_same_checkpoint(group, checkpoint)
        if writes:
            for damage in damages:
                warn(f"skipping a checkpoint: {damage}")
            remove_after(run, checkpoint)
        if checkpoint is None:
            return run_loop(prepared, run, trail, None, observers, stop)
        # [Step 4] Restore model, optimizer and order, and train on.
        problem = prepared.problem
        restore_state(checkpoint.state, problem.model, problem.optimizer, problem.order)
        return run_loop(prepared, run, trail, checkpoint.start, observers, stop)


def read_unfinished(run: Path) -> Config:
    """Return the configuration of a run that can be continued."""
    if os.path.lexists(run / RECEIPT):
        raise RunError(f"{run} is finished; `seedless verify {run}` checks it")
    if run.is_dir() and (added := check_run_files(run, finished=False)):
        raise RunError(f"{run} holds something that no run wrote: {added[0]}")
    return read_config(run)


def move_run(config: Config, device: str | None, in_group: bool) -> Config:
    """Return the configuration of a run as it is continued here, perhaps on other hardware.

    A run in portable arithmetic may change its device, its threads and its number of processes.
    """
    execution = config.execution
    if device is not None:
        choose("device", device, dict.fromkeys(DEVICES))
    if not config.is_portable:
        if device not in (None, execution.device):
            raise ConfigError(
                f"the run began on {execution.device} in native arithmetic, whose bits depend on "
                f"the device; only a portable run can be continued on {device}"
            )
        return config
    is_missing = execution.device == "cuda" and not torch.cuda.is_available()
    if device is None and not is_missing and not in_group:
        return config
    return config.change(
        execution={
            "device": device or ("auto" if is_missing else execution.device),
            "mode": "auto",
            "threads": None,
        }
    )


def check_same_checkpoint(group: TrainingGroup | None, checkpoint: Checkpoint | None) -> None:
    """Refuse to continue where the processes of a group do not read the same checkpoint."""
    if group is None:
        return
    own = None if checkpoint is None else [checkpoint.path.name, hash_file(checkpoint.path)]
    found = exchange_values(group.messages, own)
    for rank, other in enumerate(found):
        if other != found[0]:
            raise RunError(
                f"expected all {group.size} processes to continue from {found[0]}, got {other} in "
                f"process {rank}: put the run folder where every machine can read it"
            )


def remove_after(run: Path, checkpoint: Checkpoint | None) -> None:
    """Delete the damaged checkpoints after an intact one; without an intact one keep all."""
    if checkpoint is None:
        return
    for _, path in list_checkpoints(run)[::-1]:
        if path == checkpoint.path:
            break
        path.unlink()


def check_beginning(run: Path, trail: TrailWriter, execution: ExecutionConfig) -> None:
    """Refuse to continue a run that began with other data, code or versions than are here now.

    What changes no bit (idle cores, the shell's thread variables) may differ: trail and receipt
    keep what the run began with.
    """
    begun = trail.begun
    if begun is None:
        return
    now = dict(trail.facts)
    environment = now.pop("environment")
    now["initialization"] = use_recorded_name(now["initialization"], begun["initialization"])
    changed = compare_values({key: begun.get(key) for key in now}, now)
    changed += compare_environments(begun["environment"], environment, execution)[0]
    if changed:
        raise RunError(
            f"{run} began with other data, code or versions than are here now, so it cannot be "
            f"continued: {'; '.join(map(str, changed[:3]))}. Restore them, or start a new run"
        )
    trail.facts = {key: begun[key] for key in trail.facts}
