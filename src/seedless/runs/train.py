"""Train a configuration into a new run folder: `train_run`. Continuing a run is in resume.py.

prepare -> make the folder -> loop with trail, log and checkpoints -> seal
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import torch

from seedless.core.config import Config
from seedless.core.errors import (
    NumericsError,
    RunError,
    SeedlessError,
    TrainError,
    TrainingDivergedError,
)
from seedless.data.splits import refuse_repeated
from seedless.proof.trail import TrailWriter, describe_beginning
from seedless.runs.finished_run import Run
from seedless.runs.folder import check_destination, lock, make_folder
from seedless.runs.group import check_agreement, configure_member, join_run
from seedless.runs.prepare import Prepared, Preparer, prepare
from seedless.runs.seal import seal
from seedless.train.background_observer import BackgroundObserver
from seedless.train.checkpoint import is_checkpoint_due, list_checkpoints, save_checkpoint
from seedless.train.log import LogWriter
from seedless.train.loop import train
from seedless.train.process_group import TrainingGroup, fail_together
from seedless.train.progress_state import Observer, ProgressState, Start


class InterruptedRunError(SeedlessError):
    """The run was asked to stop; its checkpoint is written."""


class CheckpointWriter(Observer):
    """Writes a checkpoint every k epochs, at the end, and where a run is asked to stop."""

    def __init__(self, run: Path, config_digest: str) -> None:
        self.run = run
        self.config_digest = config_digest

    def epoch(self, progress: ProgressState) -> None:
        """Write the state after the k-th, 2k-th, ... and the last epoch."""
        if is_checkpoint_due(progress.problem.config.train, progress.position.epoch):
            save_checkpoint(self.run, progress, self.config_digest)

    def stop(self, progress: ProgressState) -> None:
        """Write the state after the step at which the run stops."""
        save_checkpoint(self.run, progress, self.config_digest)


def train_run(
    config: Config,
    out: Path,
    *,
    force: bool = False,
    observers: Sequence[Observer] = (),
    stop: Callable[[], bool] = lambda: False,
    preparer: Preparer = prepare,
    group: TrainingGroup | None = None,
) -> Run:
    """Train what a configuration describes, write the run folder ``out``, and return the run.

    Args:
        config: settings as read; what the data and the machine decide is filled in.
        out: the run folder; it must not exist yet, or be empty.
        force: replace a run that is there.
        observers: called by the loop after the run's own trail, log and checkpoints.
        stop: called after every step; True ends the run with a checkpoint to resume from.
        preparer: turns the configuration into a training problem.
        group: the processes that train together, each of which calls this; the first one writes.

    Example:
        >>> train_run(open_config("demo"), Path("runs/demo")).digest
    """
    writes = group is None or group.is_first
    with fail_together(group):
        if writes:
            check_destination(out, force)
    with fail_together(group), explain_memory(config):
        prepared = join_run(preparer(configure_member(config, group)), group)
        refuse_repeated(prepared.facts["data"], prepared.config.data, prepared.repeated_record)
    facts = describe_beginning(prepared.config.digest, prepared.facts)
    check_agreement(group, facts, prepared.config)
    with ExitStack() as stack:
        trail = None
        with fail_together(group):
            if writes:
                make_folder(out, prepared.config, force)
                stack.enter_context(lock(out))
                trail = TrailWriter(out, facts)
        return run_loop(prepared, out, trail, None, observers, stop)


def run_loop(
    prepared: Prepared,
    run: Path,
    trail: TrailWriter | None,
    start: Start | None,
    observers: Sequence[Observer],
    stop: Callable[[], bool],
) -> Run:
    """Train from ``start`` to the end, writing trail, log and checkpoints; then seal the run.

    Without a trail nothing is written, as in all processes of a group but the first.
    """
    watchers, background = tuple(observers), None
    if trail is not None:
        writers: Sequence[Observer] = (trail, CheckpointWriter(run, prepared.config.digest))
        if prepared.problem.device.type == "cuda":  # the GPU continues while they write
            background = BackgroundObserver(writers)
            writers = (background,)
        # The log is written first: when a checkpoint exists, the log lines before it must exist.
        watchers = (LogWriter(run), *writers, *observers)
    try:
        with explain_memory(prepared.config):
            outcome = train(prepared.problem, watchers, start=start, stop=stop)
            if background is not None:
                background.wait()
            if not outcome.stopped:
                return seal(prepared, run, trail, outcome)
    except (TrainingDivergedError, NumericsError):
        if trail is not None:
            discard_if_useless(run, background)
        raise
    except OSError as error:
        raise RunError(f"cannot write {run}: {error.strerror}") from None
    step = outcome.last.position.step
    raise InterruptedRunError(f"stopped; `seedless resume {run}` continues after step {step}")


def discard_if_useless(run: Path, background: BackgroundObserver | None) -> None:
    """Remove the folder of a run that failed before its first checkpoint.

    One that diverged, or drew from a generator, would only fail again. With a checkpoint,
    the log and the last good state are kept.
    """
    if background is not None:
        with suppress(OSError):  # the divergence is what is reported
            background.wait()
    if not list_checkpoints(run):
        shutil.rmtree(run, ignore_errors=True)


@contextmanager
def explain_memory(config: Config) -> Iterator[None]:
    """Turn running out of memory into an error that says what to do."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        message = str(error).partition("\n")[0]
        certain = isinstance(error, torch.OutOfMemoryError | MemoryError)
        # Some allocators raise a plain RuntimeError, which only its message distinguishes.
        if not certain and not any(w in message for w in ("allocate memory", "enough memory")):
            raise
        raise TrainError(
            f"out of memory on {config.execution.device} with batches of "
            f"{config.order.batch_size}: {message}. Lower order.batch_size, or set "
            "train.microbatch to accumulate the same batch in parts"
        ) from None
