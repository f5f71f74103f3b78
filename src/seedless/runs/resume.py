"""Continue a run that was killed or stopped, to the bits it would have had."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from seedless.core.config import ExecutionConfig
from seedless.core.errors import RunError
from seedless.core.mismatch import compare_values
from seedless.data.splits import refuse_repeated
from seedless.numerics.environment_difference import compare_environments
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.run_files import check_run_files
from seedless.proof.trail import TrailWriter, describe_beginning
from seedless.runs.folder import Run, clear_leftovers, lock, read_config
from seedless.runs.prepare import Preparer, prepare
from seedless.runs.train import explain_memory, run_loop
from seedless.train.checkpoint import find_last_checkpoint, list_checkpoints
from seedless.train.progress_state import Observer
from seedless.train.state_tensors import restore_state


def resume_run(
    run: Path,
    *,
    observers: Sequence[Observer] = (),
    stop: Callable[[], bool] = lambda: False,
    preparer: Preparer = prepare,
    warn: Callable[[str], None] = lambda _: None,
) -> Run:
    """Continue an unfinished run from its last intact checkpoint, or from the start without one.

    Args:
        run: the run folder.
        observers, stop, preparer: as for `train_run`.
        warn: called with one sentence for every damaged checkpoint that is skipped.

    Example:
        >>> resume_run(Path("runs/demo")).digest
    """
    if os.path.lexists(run / RECEIPT):
        raise RunError(f"{run} is finished; `seedless verify {run}` checks it")
    if run.is_dir() and (added := check_run_files(run, finished=False)):
        raise RunError(f"{run} holds something that no run wrote: {added[0]}")
    config = read_config(run)
    with lock(run):
        # [Step 1] Prepare the same problem again; the configuration must resolve as it did.
        with explain_memory(config):
            prepared = preparer(config)
        refuse_repeated(prepared.facts["data"], config.data, prepared.repeated_record)
        if prepared.config.digest != config.digest:
            raise RunError(f"{run}: its configuration resolves to another one here; was it edited?")
        # [Step 2] Read the trail: the run must have begun with what is here now.
        clear_leftovers(run)
        trail = TrailWriter(run, describe_beginning(config.digest, prepared.facts))
        check_beginning(run, trail, prepared.config.execution)
        # [Step 3] Find the last intact checkpoint; drop the damaged ones after it, which this run
        # writes again.
        checkpoint, damages = find_last_checkpoint(run, config.digest)
        for damage in damages:
            warn(f"skipping a checkpoint: {damage}")
        if checkpoint is None:
            return run_loop(prepared, run, trail, None, observers, stop)
        for _, path in list_checkpoints(run)[::-1]:
            if path == checkpoint.path:
                break
            path.unlink()
        # [Step 4] Restore model, optimizer and order, and train on.
        problem = prepared.problem
        restore_state(checkpoint.state, problem.model, problem.optimizer, problem.order)
        return run_loop(prepared, run, trail, checkpoint.start, observers, stop)


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
    changed = compare_values({key: begun.get(key) for key in now}, now)
    changed += compare_environments(begun["environment"], environment, execution)[0]
    if changed:
        raise RunError(
            f"{run} began with other data, code or versions than are here now, so it cannot be "
            f"continued: {'; '.join(map(str, changed[:3]))}. Restore them, or start a new run"
        )
    trail.facts = {key: begun[key] for key in trail.facts}
