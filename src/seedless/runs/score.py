"""Score the weights a run selected, and write what is left of it: weights, predictions, metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from seedless.core.config import Config
from seedless.core.digest import digest, md5
from seedless.core.errors import TrainError
from seedless.core.files import write_atomic
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import Predictions, Scored, serialize
from seedless.evaluate.scores import score_predictions
from seedless.proof.receipt import WEIGHTS
from seedless.runs.prepare import Prepared
from seedless.train.loss import Loss
from seedless.train.prediction import compute_outputs
from seedless.train.progress_state import BestWeights
from seedless.train.state_tensors import name_tensors
from seedless.train.training_problem import Split

METRICS = "metrics.json"


def finish(prepared: Prepared, best: BestWeights, run: Path | None) -> dict[str, Any]:
    """Score the selected weights and return what a receipt claims of them.

    With a folder, weights, predictions and metrics are written there.
    """
    problem, classes = prepared.problem, prepared.classes
    bad = [name for name, value in best.weights.items() if not value.isfinite().all()]
    if bad:
        raise TrainError(
            f"the weights of epoch {best.epoch} are not finite: {bad[0]} and {len(bad) - 1} more; "
            "the run has diverged. Try a lower train.rate, train.warmup_steps or train.clip_norm"
        )
    with torch.no_grad():
        for name, tensor in name_tensors(problem.model).items():
            tensor.copy_(best.weights[name])
    splits = {"validation": problem.val, "test": prepared.test}
    if problem.val is None:
        splits["train"] = problem.train  # something must show whether the run learned
    predictions = Predictions(
        classes=classes,
        weights=digest(problem.model),
        splits={
            name: predict_split(problem.model, split, problem.loss, problem.config)
            for name, split in splits.items()
            if split is not None
        },
        task=prepared.facts["data"]["task"],
    )
    metrics: dict[str, Any] = dict(score_predictions(predictions))
    judged = metrics["train" if problem.val is None else "validation"]["macro_auc"]
    metrics["selected"] = {"epoch": best.epoch, "metric": "macro_auc", "score": best.score}
    metrics["converged"] = judged is not None and judged > problem.config.train.converged_above
    if run is not None:
        tensors = {name: tensor.contiguous() for name, tensor in best.weights.items()}
        write_atomic(run / WEIGHTS, save(tensors, metadata={"format": "pt"}))
        write_atomic(run / PREDICTIONS, serialize(predictions))
        text = json.dumps(metrics, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        write_atomic(run / METRICS, text.encode() + b"\n")
    return {
        "weights": {
            "digest": predictions.weights,
            "md5": md5(problem.model),
            "epoch": best.epoch,
        },
        "metrics": metrics,
        "predictions": predictions.digest,
    }


def predict_split(model: nn.Module, split: Split, loss: Loss, config: Config) -> Scored:
    """Return what a model says of a split, with the features it says it from."""
    outputs = compute_outputs(model, split, config, with_features=True)
    seen = [outputs.logits] if outputs.features is None else [outputs.logits, outputs.features]
    if not all(values.isfinite().all() for values in seen):
        raise TrainError(
            "the model gives NaN or infinity for some records although its weights are finite; "
            "the run has diverged. Try a lower train.rate, train.warmup_steps or train.clip_norm"
        )
    return Scored(
        ids=split.ids,
        probabilities=loss.probabilities(outputs.logits).numpy(),
        labels=split.labels.cpu().numpy().astype(np.uint8),
        features=None if outputs.features is None else outputs.features.numpy(),
    )
