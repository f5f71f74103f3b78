"""Checkpoints: the complete state of a run in one safetensors file.

Files are named by position: "epoch-0007.safetensors" after an epoch, or, where a run was stopped
within an epoch, "epoch-0007-batch-0012.safetensors" until the next complete epoch replaces it. The
one metadata key, "seedless", holds canonical JSON: the position, the best weights' epoch and score,
and a digest over all tensors.

A file is complete or does not exist: it is written under a temporary name, synchronized to the disk
and renamed. Older files are deleted only after that, so a run killed at any time can be resumed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from seedless.core.bounded_reading import parse_json
from seedless.core.config import TrainConfig
from seedless.core.digests import canonical_json, digest, digest_value
from seedless.core.errors import RunError
from seedless.core.files import write_atomic
from seedless.core.tensor_files import load_tensors
from seedless.train.progress_state import BestWeights, Position, ProgressState, Start

CHECKPOINT_FOLDER = "checkpoints"
SCHEMA = "seedless.checkpoint/1"
# What a checkpoint says of itself, besides its digest.
_FIELDS = {"schema", "config", "epoch", "batch", "step", "best", "moved", "tensors"}
_NAME = re.compile(r"epoch-([0-9]{4,9})(?:-batch-([0-9]{4,9}))?\.safetensors")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The content of a file: the state to restore, and the position to start from."""

    path: Path
    state: Mapping[str, Tensor]
    start: Start


def checkpoint_file_name(position: Position) -> str:
    """Return the file name of the checkpoint at a position."""
    within = f"-batch-{position.batch:04d}" if position.batch else ""
    return f"epoch-{position.epoch:04d}{within}.safetensors"


def parse_checkpoint_name(name: str) -> Position | None:
    """Return the position that a checkpoint's file name says, or None for another name.

    The name holds no step number, so the position's step is 0.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    position = Position(int(match[1]), int(match[2] or 0))
    return position if checkpoint_file_name(position) == name else None  # one name a position


def is_checkpoint_due(settings: TrainConfig, epoch: int) -> bool:
    """Whether a run writes a checkpoint after this epoch: every k-th, and the last."""
    return epoch % settings.checkpoint_every == 0 or epoch == settings.epochs


def serialize_checkpoint(progress: ProgressState, config_digest: str) -> bytes:
    """Return the content of the checkpoint of a state."""
    # [Step 1] Collect the tensors: the state, the losses of an unfinished epoch, the best weights.
    position, best = progress.position, progress.best
    layout = torch.contiguous_format  # and copies: safetensors refuses tensors that share memory
    tensors = {name: tensor.clone(memory_format=layout) for name, tensor in progress.state.items()}
    if position.batch:
        tensors["epoch/losses"] = progress.losses[: progress.seen].cpu().contiguous()
    if best is not None:
        tensors |= {f"best/{name}": tensor for name, tensor in best.weights.items()}
    # [Step 2] Describe them, with a digest over the tensors and one over the description.
    meta = {
        "schema": SCHEMA,
        "config": config_digest,
        "epoch": position.epoch,
        "batch": position.batch,
        "step": position.step,
        "best": None if best is None else {"epoch": best.epoch, "score": best.score},
        "moved": list(progress.moved),
        "tensors": digest(tensors),
    }
    sealed = canonical_json({**meta, "digest": digest_value(meta)}).decode()
    return save(tensors, metadata={"seedless": sealed})


def save_checkpoint(run: Path, progress: ProgressState, config_digest: str) -> Path:
    """Write the state of a run, and return the path of the file."""
    position = progress.position
    path = run / CHECKPOINT_FOLDER / checkpoint_file_name(position)
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, serialize_checkpoint(progress, config_digest))
    # Only now delete the checkpoints within an epoch that this one replaces.
    if not position.batch:
        for old in path.parent.glob("epoch-*-batch-*.safetensors"):
            old.unlink()
    return path


def list_checkpoints(run: Path) -> list[tuple[Position, Path]]:
    """Return positions and paths of a run's checkpoints, earliest first."""
    checkpoints = []
    for path in (run / CHECKPOINT_FOLDER).glob("*.safetensors"):
        position = parse_checkpoint_name(path.name)
        if position is not None:
            checkpoints.append((position, path))
    return sorted(checkpoints, key=lambda item: (item[0].epoch, item[0].batch))


def read_checkpoint(path: Path, config_digest: str) -> Checkpoint:
    """Return the content of a checkpoint; raise RunError where it is damaged or of another run."""
    try:
        tensors, metadata = load_tensors(path)
        sealed = metadata["seedless"].encode()
        meta: dict[str, Any] = parse_json(sealed, f"{path} cannot be read as a checkpoint: it")
        claimed = meta.pop("digest")
        if digest_value(meta) != claimed or digest(tensors) != meta["tensors"]:
            raise RunError(f"{path} is damaged: its content does not match its digest")
        if meta["schema"] != SCHEMA:
            raise RunError(f"{path}: expected a {SCHEMA}, got {meta['schema']!r}")
        if meta.keys() != _FIELDS:
            raise RunError(f"{path} holds {min({*meta} ^ _FIELDS)!r}, or lacks it: it was edited")
        if meta["config"] != config_digest:
            raise RunError(f"{path} belongs to a run of another configuration")
        position = Position(meta["epoch"], meta["batch"], meta["step"])
        if path.name != checkpoint_file_name(position):
            raise RunError(f"{path} holds the state of {checkpoint_file_name(position)}")
        if {*metadata} != {"seedless"}:
            raise RunError(f"{path} has other metadata than a checkpoint: they were added")
        best, extra = meta["best"], ("best/", "epoch/")
        start = Start(
            position,
            best and BestWeights(best["epoch"], best["score"], _select_prefix(tensors, "best/")),
            tensors.get("epoch/losses", torch.empty(0)),
            tuple(meta["moved"]),
        )
    except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} cannot be read as a checkpoint: {error}") from None
    state = {name: value for name, value in tensors.items() if not name.startswith(extra)}
    return Checkpoint(path, state, start)


def find_last_checkpoint(run: Path, config_digest: str) -> tuple[Checkpoint | None, list[str]]:
    """Return the last complete checkpoint, and the problems of those after it."""
    problems: list[str] = []
    for _, path in reversed(list_checkpoints(run)):
        try:
            return read_checkpoint(path, config_digest), problems
        except RunError as error:
            problems.append(str(error))
    return None, problems


def _select_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with a prefix, under names without it."""
    return {n.removeprefix(prefix): value for n, value in tensors.items() if n.startswith(prefix)}
