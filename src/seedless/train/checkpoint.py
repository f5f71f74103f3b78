"""Checkpoints: the whole state of a run in one safetensors file, complete or not there at all.

A file is named by its position, "epoch-0007.safetensors", or for one within an epoch, which the
next whole epoch replaces, "epoch-0007-batch-0012.safetensors". Its one metadata key, "seedless",
holds canonical JSON: the position, the best weights' epoch and score, a digest over all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from seedless.core.canonical import canonical_json
from seedless.core.digest import digest, digest_value
from seedless.core.errors import RunError
from seedless.core.files import write_atomic
from seedless.train.progress_state import BestWeights, Position, ProgressState, Start

CHECKPOINT_FOLDER = "checkpoints"
SCHEMA = "seedless.checkpoint/1"
_NAME = re.compile(r"epoch-(\d{4,})(?:-batch-(\d{4,}))?\.safetensors")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a file holds: the state to restore, and where the loop goes on."""

    path: Path
    state: Mapping[str, Tensor]
    start: Start


def checkpoint_file_name(position: Position) -> str:
    """Return the file name of a position."""
    within = f"-batch-{position.batch:04d}" if position.batch else ""
    return f"epoch-{position.epoch:04d}{within}.safetensors"


def save_checkpoint(run: Path, progress: ProgressState, config_digest: str) -> Path:
    """Write the state of a moment; older ones within an epoch are removed after it is there."""
    position, best = progress.position, progress.best
    layout = torch.contiguous_format  # and copies: safetensors writes no two that share memory
    tensors = {name: tensor.clone(memory_format=layout) for name, tensor in progress.state.items()}
    if position.batch:
        tensors["epoch/losses"] = progress.losses[: progress.seen].cpu().contiguous()
    if best is not None:
        tensors |= {f"best/{name}": tensor for name, tensor in best.weights.items()}
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
    path = run / CHECKPOINT_FOLDER / checkpoint_file_name(position)
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, save(tensors, metadata={"seedless": sealed}))
    if not position.batch:
        for other in path.parent.glob("epoch-*-batch-*.safetensors"):
            other.unlink()
    return path


def list_checkpoints(run: Path) -> list[tuple[Position, Path]]:
    """Return the checkpoints of a run by position, earliest first; their steps are not read."""
    found = []
    for path in (run / CHECKPOINT_FOLDER).glob("*.safetensors"):
        match = _NAME.fullmatch(path.name)
        if match:
            found.append((Position(int(match[1]), int(match[2] or 0)), path))
    return sorted(found, key=lambda item: (item[0].epoch, item[0].batch))


def read_checkpoint(path: Path, config_digest: str) -> Checkpoint:
    """Read a checkpoint whole, or say what is wrong with it."""
    try:
        with safe_open(path, framework="pt") as file:
            meta: dict[str, Any] = json.loads((file.metadata() or {})["seedless"])
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        claimed = meta.pop("digest")
        if digest_value(meta) != claimed or digest(tensors) != meta["tensors"]:
            raise RunError(f"{path} is damaged: its content does not match its digest")
        if meta["schema"] != SCHEMA:
            raise RunError(f"{path}: expected a {SCHEMA}, got {meta['schema']!r}")
        if meta["config"] != config_digest:
            raise RunError(f"{path} belongs to a run of another configuration")
        position = Position(meta["epoch"], meta["batch"], meta["step"])
        if path.name != checkpoint_file_name(position):
            raise RunError(f"{path} holds the state of {checkpoint_file_name(position)}")
    except (OSError, SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} cannot be read as a checkpoint: {error}") from None
    best = meta["best"]
    parts = ("best/", "epoch/")
    return Checkpoint(
        path,
        {name: value for name, value in tensors.items() if not name.startswith(parts)},
        Start(
            position,
            best and BestWeights(best["epoch"], best["score"], _part(tensors, "best/")),
            _part(tensors, "epoch/").get("losses", torch.empty(0)),
            tuple(meta["moved"]),
        ),
    )


def find_last_checkpoint(run: Path, config_digest: str) -> tuple[Checkpoint | None, list[str]]:
    """Return the last checkpoint that is whole, and what was wrong with those after it."""
    problems: list[str] = []
    for _, path in reversed(list_checkpoints(run)):
        try:
            return read_checkpoint(path, config_digest), problems
        except RunError as error:
            problems.append(str(error))
    return None, problems


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): value for n, value in tensors.items() if n.startswith(prefix)}
