"""Is a run folder consistent with itself? Files against receipt, chain unbroken, scores recomputed.

Nothing is executed here but the scores: what a receipt claims is compared with what lies beside it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from seedless.core.config import Config
from seedless.core.digest import digest, digest_value
from seedless.core.errors import RunError
from seedless.evaluate.ranking import score_classes
from seedless.pipeline.folder import read_config
from seedless.pipeline.run import METRICS, PREDICTIONS, PROMISE, digest_predictions
from seedless.proof.receipt import WEIGHTS, check_receipt, read_receipt
from seedless.proof.trail import Entry, digest_tensors, read_trail
from seedless.train.checkpoint import list_checkpoints, read_checkpoint


@dataclass(frozen=True, eq=False)
class Opened:
    """A run folder, read and found consistent where ``problems`` is empty."""

    path: Path
    claims: Mapping[str, Any]
    config: Config
    trail: Sequence[Entry]
    problems: tuple[str, ...]


def validate(run: Path) -> Opened:
    """Read a finished run and return what is wrong with it; an unreadable one is an error."""
    statement = read_receipt(run)
    claims = statement["predicate"]
    problems = check_receipt(run, statement)
    try:
        config = read_config(run)
        trail = read_trail(run)
    except RunError as error:
        return Opened(run, claims, Config(), (), (str(error), *problems))
    try:
        problems += [
            *_check_config(config, claims),
            *_check_trail(trail, config, claims),
            *_check_weights(run, trail, config, claims),
            *_check_scores(run, config, claims),
            *_check_checkpoints(run, trail, config),
        ]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        problems.append(f"the receipt lacks what a receipt must have, or has it wrong: {error!r}")
    return Opened(run, claims, config, trail, tuple(problems))


def _check_config(config: Config, claims: Mapping[str, Any]) -> list[str]:
    problems = []
    if claims["config"]["digest"] != config.digest:
        problems.append("config.toml is not the configuration whose digest the receipt holds")
    if claims["config"]["values"] != json.loads(json.dumps(config.identity())):
        problems.append("config.toml is not the configuration the receipt quotes")
    if claims["kind"] not in ("train", "fit"):
        problems.append(f"expected a run of kind train or fit, got {claims['kind']!r}")
    promise = claims["promise"]
    honest = {
        "same_bits": not promise["generators_moved"],
        "across": PROMISE,
        "generators_moved": promise["generators_moved"],
        "control": config.control.flip_bit,
    }
    if promise != honest:
        problems.append("the receipt promises something else than its configuration allows")
    return problems


def _check_trail(trail: Sequence[Entry], config: Config, claims: Mapping[str, Any]) -> list[str]:
    problems = []
    wanted = list(range(config.train.epochs + 1))
    if [entry.get("epoch") for entry in trail] != wanted:
        problems.append(f"expected a trail of epochs 0 to {wanted[-1]}, found {len(trail)} entries")
    if claims["trail"] != {"head": trail[-1]["digest"], "entries": len(trail)}:
        problems.append("the trail does not end in the head the receipt holds")
    begun = trail[0]
    for fact in ("settings", "source", "environment", "data", "initialization", "model"):
        if begun.get(fact) != claims[fact]:
            problems.append(f"the trail's first line and the receipt disagree about {fact!r}")
    if begun.get("settings") != config.digest:
        problems.append("the trail was begun with another configuration than config.toml")
    if claims["schedule"] != digest_value([entry.get("schedule") for entry in trail[1:]]):
        problems.append("the receipt's schedule is not that of the trail")
    return problems


def _check_weights(
    run: Path, trail: Sequence[Entry], config: Config, claims: Mapping[str, Any]
) -> list[str]:
    try:
        tensors = load((run / WEIGHTS).read_bytes())
    except (OSError, SafetensorError) as error:
        return [f"{WEIGHTS} cannot be read: {error}"]
    problems = []
    epoch = claims["weights"]["epoch"]
    if digest(tensors) != claims["weights"]["digest"]:
        problems.append(f"{WEIGHTS} does not hold the weights whose digest the receipt holds")
    if not _matches(trail, epoch, {f"model/{name}": value for name, value in tensors.items()}):
        problems.append(f"{WEIGHTS} does not hold the weights the trail has at epoch {epoch}")
    scores = {entry["epoch"]: entry["score"] for entry in trail[1:] if entry["score"] is not None}
    best = max(scores, key=lambda e: (scores[e], -e)) if scores else config.train.epochs
    if (best, scores.get(best)) != (epoch, claims["metrics"]["selected"]["score"]):
        problems.append(f"the trail's best score is that of epoch {best}, not of epoch {epoch}")
    return problems


def _check_scores(run: Path, config: Config, claims: Mapping[str, Any]) -> list[str]:
    try:
        with np.load(io.BytesIO((run / PREDICTIONS).read_bytes()), allow_pickle=False) as file:
            arrays: dict[str, NDArray[Any]] = dict(file)
        metrics = json.loads((run / METRICS).read_bytes())
    except (OSError, ValueError) as error:
        return [f"{PREDICTIONS} or {METRICS} cannot be read: {error}"]
    problems = []
    if metrics != claims["metrics"]:
        problems.append(f"{METRICS} is not what the receipt holds")
    if digest_predictions(arrays) != claims["predictions"]:
        problems.append(f"{PREDICTIONS} does not hold the predictions whose digest the receipt has")
    splits = sorted(name.removesuffix("_labels") for name in arrays if name.endswith("_labels"))
    if splits != sorted(set(metrics) - {"selected", "converged"}):
        problems.append(f"{PREDICTIONS} and {METRICS} are not about the same splits")
        return problems
    for split in splits:
        scored = score_classes(
            arrays[f"{split}_probabilities"], arrays[f"{split}_labels"], arrays["classes"].tolist()
        )
        if scored != metrics[split]:
            problems.append(f"the {split} scores are not those of {PREDICTIONS}")
    judged = metrics["validation" if "validation" in metrics else "train"]["macro_auc"]
    if metrics["converged"] != (judged is not None and judged > config.train.converged_above):
        problems.append("whether the run converged does not follow from its score")
    if metrics["selected"]["epoch"] != claims["weights"]["epoch"]:
        problems.append("the scores are of another epoch than the weights")
    return problems


def _check_checkpoints(run: Path, trail: Sequence[Entry], config: Config) -> list[str]:
    problems = []
    for position, path in list_checkpoints(run):
        try:
            checkpoint = read_checkpoint(path, config.digest)
        except RunError as error:
            problems.append(str(error))
            continue
        if not position.batch and not _matches(trail, position.epoch, checkpoint.state, whole=True):
            problems.append(f"{path.name} does not hold the state the trail has at that epoch")
    return problems


def _matches(
    trail: Sequence[Entry], epoch: int, state: Mapping[str, Tensor], whole: bool = False
) -> bool:
    """Whether tensors are those of a trail's entry: its model's, or its whole state."""
    if not 0 <= epoch < len(trail):
        return False
    recorded = {
        name: value
        for name, value in trail[epoch]["state"].items()
        if whole or name.startswith("model/")
    }
    return digest_tensors(state) == recorded
