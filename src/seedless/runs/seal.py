"""Seal a trained run: score the selected weights, write the last files, and the receipt over all.

After `seal` the folder is finished: any later change of a file is found by `seedless verify`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from seedless.core.config import Config
from seedless.core.digests import digest, digest_value, md5, name_tensors
from seedless.core.errors import RunError, TrainingDivergedError
from seedless.core.files import write_atomic
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import (
    Predictions,
    SplitPredictions,
    can_keep_features,
    serialize,
)
from seedless.evaluate.scores import score_predictions
from seedless.proof.receipt import WEIGHTS, write_receipt
from seedless.proof.trail import TrailWriter, summarize_trail
from seedless.runs.finished_run import Run
from seedless.runs.prepare import Prepared
from seedless.runs.streamed_results import CONTENT, score_streamed
from seedless.train.loop import ADVICE, TrainingOutcome
from seedless.train.loss import Loss
from seedless.train.prediction import compute_outputs
from seedless.train.process_group import TrainingGroup, describe_processes, exchange_values
from seedless.train.progress_state import BestWeights, ProgressState
from seedless.train.training_problem import DataSplit
from seedless.train.user_loss import UserLoss

METRICS = "metrics.json"
WEIGHTS_METADATA = {"format": "pt"}  # all that the weights file says besides its tensors

# What is promised of the bits of a run, by its arithmetic: the receipt's `promise.across`.
PROMISES = {
    "native": "repeats on this kind of device, with this thread count and these versions",
    "portable": "repeats on every processor with IEEE float64, with these versions",
}


def seal(prepared: Prepared, run: Path, trail: TrailWriter | None, outcome: TrainingOutcome) -> Run:
    """Write weights, predictions, metrics and the receipt over everything; return the run.

    ``trail`` is None in the processes of a group that write nothing: they share the scoring.
    """
    config, group = prepared.config, prepared.problem.group
    results = score_selected(prepared, outcome.best, None if trail is None else run)
    check_same_results(group, results)
    receipt: dict[str, Any] = {}
    if trail is not None:
        claims = {
            "kind": prepared.kind,
            "config": {"digest": config.digest, "values": config.identity()},
            **trail.facts,
            **summarize_trail(trail.entries),
            "promise": describe_promise(config, outcome.last),
            "processes": describe_processes(group),
            **results,
        }
        receipt = write_receipt(run, claims)
    if group is not None:
        receipt = exchange_values(group.messages, receipt)[0]
    return Run(run, receipt, prepared.problem.model)


def check_same_results(group: TrainingGroup | None, results: Mapping[str, Any]) -> None:
    """Refuse to seal a run whose processes found different weights or read different samples."""
    if group is None:
        return
    own = [results["weights"], results["predictions"], results["metrics"].get(CONTENT)]
    found = exchange_values(group.messages, digest_value(own))
    differing = [str(rank) for rank, other in enumerate(found) if other != found[0]]
    if differing:
        raise RunError(
            f"expected the same weights and samples in all {group.size} processes; process "
            f"{' and '.join(differing)} found others than process 0, so no receipt is written. "
            "Did its data change, or does its machine compute wrongly? `seedless portable check` "
            "tells"
        )


def describe_promise(config: Config, last: ProgressState) -> dict[str, Any]:
    """Return what is promised of this run's bits, and the generators that were used."""
    return {
        "same_bits": not last.moved,
        "across": PROMISES[config.execution.arithmetic],
        "generators_moved": list(last.moved),
        "control": config.control.flip_bit,
    }


def score_selected(prepared: Prepared, best: BestWeights, run: Path | None) -> dict[str, Any]:
    """Put the selected weights into the model, score them, and return what a receipt says of them.

    With a folder, weights, predictions and metrics are written there.
    """
    problem = prepared.problem
    bad = [name for name, value in best.weights.items() if not value.isfinite().all()]
    if bad:
        raise TrainingDivergedError(
            f"the run diverged in epoch {best.epoch}: its weights are not finite, {bad[0]} and "
            f"{len(bad) - 1} more. {ADVICE}"
        )
    with torch.no_grad():
        for name, tensor in name_tensors(problem.model).items():
            tensor.copy_(best.weights[name])
    if isinstance(problem.loss, UserLoss):
        metrics, outputs = score_streamed(prepared, best)
        predictions = None
    else:
        predictions = predict_all(prepared)
        metrics, outputs = score_all(predictions, prepared, best), predictions.digest
    if run is not None:
        write_results(run, best, predictions, metrics)
    return {
        "weights": {
            "digest": digest(problem.model),
            "md5": md5(problem.model),
            "epoch": best.epoch,
        },
        "metrics": metrics,
        "predictions": outputs,
    }


def predict_all(prepared: Prepared) -> Predictions:
    """Return the predictions of the selected weights, which are in the model, for each split."""
    problem = prepared.problem
    assert isinstance(problem.loss, Loss)
    splits = {"validation": problem.val, "test": prepared.test}
    if problem.val is None:
        splits["train"] = problem.train  # some split must show whether the run learned
    return Predictions(
        classes=prepared.classes,
        weights=digest(problem.model),
        splits={
            name: predict_split(problem.model, split, problem.loss, problem.config, problem.group)
            for name, split in splits.items()
            if isinstance(split, DataSplit)
        },
        task=prepared.facts["data"]["task"],
    )


def score_all(predictions: Predictions, prepared: Prepared, best: BestWeights) -> dict[str, Any]:
    """Return the metrics of predictions: scores by split, the selected epoch, convergence."""
    metrics: dict[str, Any] = dict(score_predictions(predictions))
    score = metrics["train" if prepared.problem.val is None else "validation"]["macro_auc"]
    metrics["selected"] = {"epoch": best.epoch, "metric": "macro_auc", "score": best.score}
    metrics["converged"] = score is not None and score > prepared.config.train.converged_above
    return metrics


def write_results(
    run: Path, best: BestWeights, predictions: Predictions | None, metrics: Mapping[str, Any]
) -> None:
    """Write the selected weights, their predictions and their metrics into a run folder."""
    write_atomic(run / WEIGHTS, serialize_weights(best))
    if predictions is not None:
        write_atomic(run / PREDICTIONS, serialize(predictions))
    text = json.dumps(metrics, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_atomic(run / METRICS, text.encode() + b"\n")


def serialize_weights(best: BestWeights) -> bytes:
    """Return the content of the weights file."""
    tensors = {name: tensor.contiguous() for name, tensor in best.weights.items()}
    return save(tensors, metadata=WEIGHTS_METADATA)


def predict_split(
    model: nn.Module,
    split: DataSplit,
    loss: Loss,
    config: Config,
    group: TrainingGroup | None = None,
) -> SplitPredictions:
    """Return a model's probabilities for a split, with the features before its last layer.

    Features that are too many to be read again are left out.
    """
    outputs = compute_outputs(model, split, config, with_features=True, group=group)
    seen = [outputs.logits] if outputs.features is None else [outputs.logits, outputs.features]
    if not all(values.isfinite().all() for values in seen):
        raise TrainingDivergedError(
            "the run diverged: the model with the selected weights gives NaN or infinity for some "
            f"records, although the weights are finite. {ADVICE}"
        )
    features = outputs.features
    if features is not None and not can_keep_features(*features.shape):
        features = None
    return SplitPredictions(
        ids=split.ids,
        probabilities=loss.probabilities(outputs.logits).numpy(),
        labels=split.labels.cpu().numpy().astype(np.uint8),
        features=None if features is None else features.numpy(),
    )
