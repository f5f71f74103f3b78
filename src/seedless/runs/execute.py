"""Train a configuration into a run folder, or go on with one that was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seedless.core.config import Config
from seedless.core.digest import digest_value
from seedless.core.errors import RunError, SeedlessError, TrainError
from seedless.numerics.environment import capture_environment
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import write_receipt
from seedless.proof.replay import compare_values, judge_environment
from seedless.proof.source import describe_source
from seedless.proof.trail import TrailWriter
from seedless.runs.folder import check_place, clear_leftovers, lock, make_folder, read_config
from seedless.runs.prepare import Prepared, prepare
from seedless.runs.score import finish
from seedless.train.background_observer import BackgroundObserver
from seedless.train.checkpoint import find_last_checkpoint, list_checkpoints, save_checkpoint
from seedless.train.log import LogWriter
from seedless.train.loop import Outcome, train
from seedless.train.progress_state import Observer, ProgressState, Start
from seedless.train.state_tensors import restore_state

PROMISES = {
    "native": "repeats on this kind of device, with this thread count and these versions",
    "portable": "repeats on every processor with IEEE float64, with these versions",
}

Make = Callable[[Config], Prepared]
Say = Callable[[str], None]


class InterruptedRunError(SeedlessError):
    """The run was asked to stop; its checkpoint is written."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: its folder, its receipt, and the model with the selected weights."""

    path: Path
    receipt: Mapping[str, Any]
    model: nn.Module

    @property
    def claims(self) -> Mapping[str, Any]:
        """What the receipt says of the run."""
        predicate: Mapping[str, Any] = self.receipt["predicate"]
        return predicate

    @property
    def digest(self) -> str:
        """SHA-256 over every parameter and buffer of the selected weights."""
        return str(self.claims["weights"]["digest"])

    @property
    def md5(self) -> str:
        """The published hash of the selected weights."""
        return str(self.claims["weights"]["md5"])

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Scores by split, the selected epoch, and whether the run converged."""
        metrics: Mapping[str, Any] = self.claims["metrics"]
        return metrics


class CheckpointWriter(Observer):
    """Writes a checkpoint every k epochs, at the end, and where a run is asked to stop."""

    def __init__(self, run: Path, config_digest: str) -> None:
        self.run = run
        self.config_digest = config_digest

    def epoch(self, progress: ProgressState) -> None:
        """Write the state of the k-th, 2k-th, ... and the last epoch."""
        config, epoch = progress.problem.config.train, progress.position.epoch
        if epoch % config.checkpoint_every == 0 or epoch == config.epochs:
            save_checkpoint(self.run, progress, self.config_digest)

    def stop(self, progress: ProgressState) -> None:
        """Write the state of this very step."""
        save_checkpoint(self.run, progress, self.config_digest)


def train_run(
    config: Config,
    out: Path,
    *,
    force: bool = False,
    observers: Sequence[Observer] = (),
    stop: Callable[[], bool] = lambda: False,
    make: Make = prepare,
) -> Run:
    """Train what a configuration says into the folder ``out``."""
    check_place(out, force)
    with explain_memory(config):
        prepared = make(config)
    make_folder(out, prepared.config, force)
    with lock(out):
        return execute(prepared, out, None, observers, stop)


def resume_run(
    run: Path,
    *,
    observers: Sequence[Observer] = (),
    stop: Callable[[], bool] = lambda: False,
    make: Make = prepare,
    say: Say = lambda _: None,
) -> Run:
    """Go on with a run from its last whole checkpoint, or from the start where there is none."""
    config = read_config(run)
    if (run / RECEIPT).exists():
        raise RunError(f"{run} is finished; `seedless verify {run}` checks it")
    with lock(run):
        with explain_memory(config):
            prepared = make(config)
        if prepared.config.digest != config.digest:
            raise RunError(f"{run}: its configuration resolves to another one here; was it edited?")
        checkpoint, damages = find_last_checkpoint(run, config.digest)
        for damage in damages:
            say(f"passing over a checkpoint: {damage}")
        if checkpoint is None:
            return execute(prepared, run, None, observers, stop)
        for _, path in list_checkpoints(run)[::-1]:
            if path == checkpoint.path:
                break
            path.unlink()  # damaged, and about to be written again
        problem = prepared.problem
        restore_state(checkpoint.state, problem.model, problem.optimizer, problem.order)
        return execute(prepared, run, checkpoint.start, observers, stop)


def execute(
    prepared: Prepared,
    run: Path,
    start: Start | None,
    observers: Sequence[Observer],
    stop: Callable[[], bool],
) -> Run:
    """Run the loop with trail, log and checkpoints, then score and seal."""
    clear_leftovers(run)
    trail = TrailWriter(run, gather_facts(prepared))
    check_beginning(run, trail, prepared)
    checkpoints = CheckpointWriter(run, prepared.config.digest)
    writers: Sequence[Observer] = (trail, checkpoints)
    background = BackgroundObserver(writers)
    if prepared.problem.device.type == "cuda":
        writers = (background,)
    # The log goes first: a checkpoint must not be there before what it follows on.
    watchers = (LogWriter(run), *writers, *observers)
    try:
        with explain_memory(prepared.config):
            outcome = train(prepared.problem, watchers, start=start, stop=stop)
            background.wait()
            if not outcome.stopped:
                return seal(prepared, run, trail, outcome)
    except OSError as error:
        raise RunError(f"cannot write {run}: {error.strerror}") from None
    step = outcome.last.position.step
    raise InterruptedRunError(f"stopped; `seedless resume {run}` goes on after step {step}")


def seal(prepared: Prepared, run: Path, trail: TrailWriter, outcome: Outcome) -> Run:
    """Score the selected weights and write the receipt over everything."""
    config = prepared.config
    claims = finish(prepared, outcome.best, run)
    receipt = write_receipt(
        run,
        {
            "kind": prepared.kind,
            "config": {"digest": config.digest, "values": config.identity()},
            **trail.facts,
            "schedule": digest_value([entry["schedule"] for entry in trail.entries[1:]]),
            "trail": {"head": trail.entries[-1]["digest"], "entries": len(trail.entries)},
            "promise": describe_promise(config, outcome.last),
            **claims,
        },
    )
    return Run(run, receipt, prepared.problem.model)


def check_beginning(run: Path, trail: TrailWriter, prepared: Prepared) -> None:
    """Refuse to go on with a run that was begun with something else than is here now.

    What changes no bit (idle cores, the shell's thread variables) may differ: the trail's first
    line and the receipt keep what the run was begun with.
    """
    begun = trail.begun
    if begun is None:
        return
    now = dict(trail.facts)
    here = now.pop("environment")
    changed = compare_values({key: begun.get(key) for key in now}, now)
    execution = prepared.config.execution
    changed += judge_environment(begun["environment"], here, execution)[0]
    if changed:
        raise RunError(
            f"{run} was begun with something else than is here now, and would end as neither run: "
            f"{'; '.join(map(str, changed[:3]))}. Put that back, or start a new run"
        )
    trail.facts = {key: begun[key] for key in trail.facts}


def gather_facts(prepared: Prepared) -> dict[str, Any]:
    """Return what a run begins with: it stands in the trail's first line and in the receipt."""
    return {
        "settings": prepared.config.digest,
        "source": describe_source(),
        "environment": capture_environment(),
        **prepared.facts,
    }


def describe_promise(config: Config, last: ProgressState) -> dict[str, Any]:
    """Return what is promised of this run's bits, and what speaks against it."""
    return {
        "same_bits": not last.moved,
        "across": PROMISES[config.execution.arithmetic],
        "generators_moved": list(last.moved),
        "control": config.control.flip_bit,
    }


@contextmanager
def explain_memory(config: Config) -> Iterator[None]:
    """Say what to do where memory runs out."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        said = str(error).partition("\n")[0]
        plain = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not plain and not any(words in said for words in ("allocate memory", "enough memory")):
            raise
        raise TrainError(
            f"out of memory on {config.execution.device} with batches of "
            f"{config.order.batch_size}: {said}. Lower order.batch_size, or set train.microbatch "
            "to accumulate the same batch in parts"
        ) from None
