"""The weights and checkpoints of a run: are they those that its trail, scores and receipt name?

Each check returns what is wrong, a sentence each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from seedless.core.config import Config
from seedless.core.digests import digest, digest_each
from seedless.core.errors import SeedlessError
from seedless.core.mismatch import is_same_json
from seedless.core.tensor_files import load_tensors
from seedless.proof.receipt import WEIGHTS
from seedless.proof.trail import TrailEntry
from seedless.runs.seal import WEIGHTS_METADATA
from seedless.runs.streamed_results import METRIC, has_user_loss
from seedless.train.checkpoint import Checkpoint, list_checkpoints, read_checkpoint

if TYPE_CHECKING:
    from seedless.runs.validation import ValidatedRun

Lines = Sequence[Mapping[str, Any]]  # of a trail or a log


def check_selected(lines: Lines, claims: Mapping[str, Any], config: Config) -> list[str]:
    """Select the best epoch again from the scores of a trail or a log, without its line 0."""
    epoch, selected, problems = claims["weights"]["epoch"], claims["metrics"]["selected"], []
    best = _select(lines, config, config.train.epochs)
    metric = METRIC if has_user_loss(claims) else "macro_auc"
    if not is_same_json(best, [epoch, selected["score"]]) or selected["metric"] != metric:
        problems.append(f"the best recorded score is not that of the selected epoch, {epoch}")
    if not re.fullmatch("[0-9a-f]{32}", claims["weights"]["md5"]):
        problems.append("the receipt's md5 does not have the form of an MD5")
    return problems


def check_weights(run: ValidatedRun) -> list[str]:
    """Compare the weights with the receipt and with the trail's entry of the selected epoch.

    A stripped run has no trail, and may have no weights: its log says which epoch was selected.
    """
    lines = run.log if run.left_out else run.trail[1:]
    problems = check_selected(lines, run.claims, run.config)
    if WEIGHTS in run.left_out:
        return problems
    try:
        tensors, metadata = load_tensors(run.path / WEIGHTS)
    except (OSError, SeedlessError) as error:
        return [*problems, f"{WEIGHTS} cannot be read: {error}"]
    epoch = run.claims["weights"]["epoch"]
    if metadata != WEIGHTS_METADATA:
        # Nothing that is executed again could contradict it, and others would read it as checked.
        problems.append(f"{WEIGHTS} has other metadata than a run writes: they were added")
    if digest(tensors) != run.claims["weights"]["digest"]:
        problems.append(f"{WEIGHTS} does not have the weights that the receipt names")
    if not run.left_out and not _is_model_at(run.trail, epoch, tensors):
        problems.append(f"{WEIGHTS} does not have the weights that the trail has at epoch {epoch}")
    return problems


def check_checkpoints(run: ValidatedRun) -> list[str]:
    """Compare every checkpoint with the trail, and their epochs with the configuration."""
    config = run.config
    problems: list[str] = []
    present = {place.epoch for place, _ in list_checkpoints(run.path) if not place.batch}
    epochs, every = config.train.epochs, config.train.checkpoint_every
    if len(run.trail) != epochs + 1:  # which is said already; it may be a million checkpoints
        return problems
    for epoch in sorted({*range(every, epochs + 1, every), epochs} ^ present):
        state = "is not one of" if epoch in present else "is missing from"
        problems.append(f"the checkpoint of epoch {epoch} {state} those that config.toml demands")
    for _, path in list_checkpoints(run.path):
        try:
            checkpoint = read_checkpoint(path, config.digest)
        except SeedlessError as error:
            problems.append(str(error))
            continue
        problems += [f"{path.name} {problem}" for problem in _check_checkpoint(run, checkpoint)]
    return problems


def _check_checkpoint(run: ValidatedRun, checkpoint: Checkpoint) -> list[str]:
    """Return what is wrong with one checkpoint; each sentence lacks its subject."""
    trail, config, start = run.trail, run.config, checkpoint.start
    place, problems = start.position, []
    if place.epoch >= len(trail):
        return ["is of an epoch that the trail does not have"]
    # [Step 1] The best weights so far, selected again from the trail's scores.
    best = None if start.best is None else [start.best.epoch, start.best.score]
    if not is_same_json(best, _select(trail[1:], config, place.epoch)):
        problems.append("has the best weights of another epoch than the trail's scores select")
    if start.best is not None and not _is_model_at(trail, start.best.epoch, start.best.weights):
        problems.append("has other best weights than the trail records for their epoch")
    # [Step 2] The whole state. Within an epoch the trail has no entry to compare it with.
    if place.batch:
        return problems
    entry = trail[place.epoch]
    if digest_each(checkpoint.state) != entry["state"] or place.step != entry["step"]:
        problems.append("does not have the state that the trail records for its epoch")
    moved = tuple(run.claims["promise"]["generators_moved"])
    if place.epoch == config.train.epochs and start.moved != moved:
        problems.append("and the receipt disagree about the generators that moved")
    return problems


def _select(lines: Lines, config: Config, epoch: int) -> list[Any] | None:
    """Return epoch and score of the weights a run keeps after an epoch, or None before any."""
    scores = {line["epoch"]: line["score"] for line in lines[:epoch] if line["score"] is not None}
    if not scores:
        return [epoch, None] if epoch == config.train.epochs else None
    best = max(scores, key=lambda e: (scores[e], -e))
    return [best, scores[best]]


def _is_model_at(trail: Sequence[TrailEntry], epoch: int, weights: Mapping[str, Tensor]) -> bool:
    """Whether weights are those that the model had at an entry of a trail."""
    if not 0 <= epoch < len(trail):
        return False
    state = trail[epoch]["state"]
    recorded = {name: state[name] for name in state if name.startswith("model/")}
    return digest_each({f"model/{name}": value for name, value in weights.items()}) == recorded
