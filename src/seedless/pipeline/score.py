"""Score the weights a run selected, and write what is left of it: weights, predictions, metrics."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save

from seedless.core.digest import digest, digest_value, md5
from seedless.core.errors import TrainError
from seedless.core.files import write_atomic
from seedless.evaluate.ranking import score_classes
from seedless.pipeline.prepare import Prepared
from seedless.proof.receipt import WEIGHTS
from seedless.train.moment import Best
from seedless.train.predict import predict
from seedless.train.state import name_tensors

METRICS = "metrics.json"
PREDICTIONS = "predictions.npz"


def finish(prepared: Prepared, best: Best, run: Path | None) -> dict[str, Any]:
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
    arrays: dict[str, NDArray[Any]] = {"classes": np.array(classes)}
    metrics: dict[str, Any] = {}
    splits = {"validation": problem.val, "test": prepared.test}
    if problem.val is None:
        splits["train"] = problem.train  # something must show whether the run learned
    for name, split in splits.items():
        if split is not None:
            probabilities = predict(problem.model, split, problem.loss, problem.config)
            labels = split.labels.cpu().numpy().astype(np.uint8)
            metrics[name] = score_classes(probabilities, labels, classes)
            arrays |= {
                f"{name}_ids": split.ids,
                f"{name}_probabilities": probabilities,
                f"{name}_labels": labels,
            }
    judged = metrics["train" if problem.val is None else "validation"]["macro_auc"]
    metrics["selected"] = {"epoch": best.epoch, "metric": "macro_auc", "score": best.score}
    metrics["converged"] = judged is not None and judged > problem.config.train.converged_above
    if run is not None:
        tensors = {name: tensor.contiguous() for name, tensor in best.weights.items()}
        write_atomic(run / WEIGHTS, save(tensors, metadata={"format": "pt"}))
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_atomic(run / PREDICTIONS, buffer.getvalue())
        text = json.dumps(metrics, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        write_atomic(run / METRICS, text.encode() + b"\n")
    return {
        "weights": {
            "digest": digest(problem.model),
            "md5": md5(problem.model),
            "epoch": best.epoch,
        },
        "metrics": metrics,
        "predictions": digest_predictions(arrays),
    }


def digest_predictions(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of a prediction file's content: names as text, numbers as bytes."""
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind not in "US"}
    texts = {name: array.tolist() for name, array in arrays.items() if name not in numbers}
    return digest_value({"numbers": digest(numbers), "texts": digest_value(texts)})
