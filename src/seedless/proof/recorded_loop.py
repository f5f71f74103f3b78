"""Record the user's own training loop: `with seedless.record(...) as trail: trail.step(...)`.

A loop that is killed and started again goes on with its trail: steps that are trained a second time
must give the lines that are there already, and later steps are appended. So the trail of a loop
that resumes exactly has the lines of one that was never stopped.
"""

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch.distributed

from seedless.core.checks import check_integer
from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.core.files import AnyPath
from seedless.core.plain_values import describe_value, digest_structure
from seedless.numerics.environment import capture_environment
from seedless.proof.loop_lines import (
    LOOP_SCHEMA,
    TrailSize,
    compare_lines,
    fold_state,
    name_trail_file,
    read_loop_trail,
)
from seedless.proof.loop_state import Models, Optimizers, describe_loss, describe_parts
from seedless.proof.trail import GENESIS, TrailEntry, chain
from seedless.proof.trail_file import TrailFile

# Set for a script that is executed again: its trails go into this folder, under the last name of
# the folder that the script gives, so that the recorded ones are not touched.
FOLDER_VARIABLE = "SEEDLESS_RECORD_FOLDER"
# The step after which such a script is ended.
UNTIL_VARIABLE = "SEEDLESS_RECORD_UNTIL"
MAX_STEP = 2**63 - 1
# Variables beside those that change bits without which a script may not start again.
START_VARIABLES = ("PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def record(
    folder: AnyPath,
    model: Models,
    optimizer: Optimizers = None,
    *,
    scheduler: Any = None,
    scaler: Any = None,
    sampler: Any = None,
    generators: Mapping[str, Any] | None = None,
    config: Any = None,
    rank: int | None = None,
    force: bool = False,
) -> "RecordedLoop":
    """Record a training loop of your own, so that `seedless diff` can compare two runs of it.

    Each call of the trail's `step` writes one line: the digest of every parameter, buffer and
    optimizer tensor, and learning rates, scheduler, scaler, sampler, generators and batch. A loop
    that is killed and resumed in the same folder goes on with its trail: see `RecordedLoop.step`.

    Args:
        folder: where the trail is written: trail.jsonl, or trail-RANK.jsonl in other processes.
        model: a model, or a dict or list of them. It may be compiled, wrapped or sharded.
        optimizer: an optimizer, or a dict or list of them.
        scheduler: a scheduler, or a dict or list of them.
        scaler: a gradient scaler, or a dict or list of them.
        sampler: a sampler or data loader with `state_dict`, or a dict or list of them.
        generators: generators of your own by name, of torch, numpy or `random.Random`.
        config: settings to record with it: anything.
        rank: the number of this process; by default that of torch.distributed, or of RANK.
        force: begin a new trail in place of one that is there.

    Example:
        >>> with seedless.record("runs/mine", model, optimizer, config=vars(args)) as trail:
        ...     for step, batch in enumerate(batches, start=1):
        ...         loss = train_step(batch)
        ...         trail.step(step=step, loss=loss, batch=batch)
    """
    if rank is None:
        rank = _find_process()[0]
    check_integer("rank", rank, 0, 999_999, error=RunError)
    parts = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "scaler": scaler,
        "sampler": sampler,
        "generators": dict(generators or {}),
    }
    return RecordedLoop(_choose_folder(Path(folder)), rank, parts, config, force=force)


class RecordedLoop:
    """The trail of a loop while it trains; `record` makes one. Leaving its block closes the file.

    Attributes:
        path: the file.
        head: the digest of the line of the last step.
        difference: where a resumed loop differs from what was recorded before, as a sentence;
            None while it agrees.
    """

    def __init__(
        self, folder: Path, rank: int, parts: Mapping[str, Any], config: Any, *, force: bool
    ) -> None:
        self.path = folder / name_trail_file(rank)
        self.difference: str | None = None
        self.head = GENESIS
        self._full = False
        self._parts = parts
        self._last: int | None = None
        self._file = TrailFile(self.path)
        try:
            self._lines = self._begin(rank, config, force)
        except BaseException:
            self._file.close()
            raise
        self._next = 0  # the place of the line that the next step is compared with, or written to
        self._size = TrailSize()
        self._pass(self._lines[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; another process may then write it."""
        self._file.close()

    def step(
        self, *, step: int, epoch: int | None = None, loss: Any = None, batch: Any = None
    ) -> str:
        """Record the state after an optimizer step; return the digest of its line.

        Where the trail has a line of this step already, because the loop was killed after it and
        resumed before it, the two are compared. If they differ, a warning says at which step and in
        what, the file so far is kept beside it under another name, and the trail goes on with what
        the loop does now; the new line names the one it replaces.

        Args:
            step: the number of the step. It must increase from call to call; not every step must be
                recorded.
            epoch: the epoch, as your loop counts it.
            loss: a number, a tensor with one element, or a dict or list of them.
            batch: what the step was computed from: any nested structure of tensors, arrays,
                numbers and text.
        """
        step = self._check_step(step)
        if self._last is None:
            # The first call says where the loop resumes: lines before it stay.
            while self._next < len(self._lines) and self._lines[self._next]["step"] < step:
                self._pass(self._lines[self._next])
        self._last = step
        content = {
            "kind": "step",
            "step": step,
            "epoch": None if epoch is None else describe_value(epoch),
            "loss": describe_loss(loss),
            "batch": None if batch is None else digest_structure(batch),
            **describe_parts(self._parts),
        }
        if self._size.is_long:
            content["state"] = fold_state(content["state"])
        self._compare_or_append(content)
        _end_if_executed_again(step)
        return self.head

    def _compare_or_append(self, content: dict[str, Any]) -> None:
        """Compare a step that was recorded before; append any other."""
        step = content["step"]
        if self._next < len(self._lines):
            known = self._lines[self._next]
            differing = ["step"] if known["step"] != step else compare_lines(known, content)
            if not differing:
                self._pass(known)
                return
            self._replace_lines(known, differing)
            content["replaces"] = known["digest"]
        if self._size.is_full:
            self._say_full(step)
            return
        entry = chain(content, self.head)
        self._file.append(entry)
        self._pass(entry)

    def _begin(self, rank: int, config: Any, force: bool) -> list[TrailEntry]:
        """Return the lines that are there, or write line 0 of a new trail."""
        lines = [] if force else read_loop_trail(self.path.parent, rank)
        if lines:
            if lines[0].get("schema") != LOOP_SCHEMA:
                raise RunError(
                    f"{self.path} is a trail of {lines[0].get('schema')}, which cannot be "
                    "continued; use another folder, or force=True to replace it"
                )
            # A killed process can leave half a line.
            self._file.cut(sum(len(canonical_json(line)) + 1 for line in lines))
            return lines
        self._file.cut(0)
        settings = describe_value(config)
        start = chain(
            {
                "kind": "start",
                "schema": LOOP_SCHEMA,
                "epoch": None,
                "step": None,
                "settings": settings if isinstance(settings, dict) else {"config": settings},
                "environment": capture_environment(),
                "command": _describe_command(),
                "rank": rank,
                "world_size": _find_process()[1],
                **describe_parts(self._parts),
            },
            GENESIS,
        )
        self._file.append(start)
        return [start]

    def _check_step(self, step: int) -> int:
        if isinstance(step, torch.Tensor) and step.numel() == 1:
            step = int(step)
        step = check_integer("step", step, 0, MAX_STEP, error=RunError)
        if self._last is not None and step <= self._last:
            raise RunError(
                f"expected a step above {self._last}, which was recorded last, got {step}: give "
                "the number of optimizer steps done, and record each step once"
            )
        self._file.check_open()
        return step

    def _replace_lines(self, known: TrailEntry, differing: list[str]) -> None:
        """Say where the loop differs from its trail, keep that file, and cut the trail there."""
        kept = self._file.find_free_name()
        ordered = sorted(differing, key=lambda name: "/" in name)  # tensors last: they are many
        what = ", ".join(ordered[:4]) + (f" and {len(ordered) - 4} more" * (len(ordered) > 4))
        self.difference = (
            f"step {known['step']} differs from what {self.path} recorded before ({what}): the "
            "loop did not resume exactly, or it is another run. The trail goes on with the steps "
            f"that are trained now; the former one is {kept.name}"
        )
        self._file.cut(self._size.size, keep=kept)
        self._lines = self._lines[: self._next]
        warnings.warn(self.difference, stacklevel=4)

    def _pass(self, entry: TrailEntry) -> None:
        """Go on behind a line, which is in the file."""
        self._next += 1
        self._size.add(entry)
        self.head = str(entry["digest"])

    def _say_full(self, step: int) -> None:
        """Warn once that later steps are not recorded; the user's loop goes on."""
        if not self._full:
            self._full = True
            warnings.warn(
                f"{self.path} has as many lines as can be read again; step {step} and later ones "
                "are not recorded. Record every tenth step, say, or once an epoch",
                stacklevel=4,
            )


def _choose_folder(folder: Path) -> Path:
    into = os.environ.get(FOLDER_VARIABLE)
    if not into:
        return folder
    folder.mkdir(parents=True, exist_ok=True)  # the script may save its checkpoints there
    return Path(into) / folder.absolute().name


def _end_if_executed_again(step: int) -> None:
    """End a script that was started to be compared up to a step."""
    until = os.environ.get(UNTIL_VARIABLE, "")
    if until.isdecimal() and step >= int(until):
        raise SystemExit(0)


def _find_process() -> tuple[int, int]:
    """Return the rank of this process and how many there are."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    found = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE")]
    rank, size = (int(text) if text.isdecimal() else None for text in found)
    return rank or 0, size or 1


def _describe_command() -> dict[str, Any]:
    """Return how this process was started, so that it can be started again."""
    names = [name for name in START_VARIABLES if name in os.environ]
    command = {
        "argv": sys.orig_argv,
        "executable": sys.executable,
        "cwd": os.getcwd(),
        "variables": {name: os.environ[name] for name in names},
    }
    return {name: describe_value(value) for name, value in command.items()}
