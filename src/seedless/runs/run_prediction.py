"""The probabilities that the model of a finished run gives new samples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from seedless.core.config import Config
from seedless.core.digests import as_rows
from seedless.core.errors import DataError, RunError, SeedlessError
from seedless.data.model_inputs import Arrays
from seedless.data.normalize import Scale
from seedless.numerics.saved_flags import run_by_itself
from seedless.runs.model_preparation import move_model
from seedless.runs.prepare import configure_execution, make_split
from seedless.runs.streamed_results import has_user_loss
from seedless.train.loss import make_loss
from seedless.train.prediction import predict


@run_by_itself()
def predict_samples(
    claims: Mapping[str, Any], config: Config, model: nn.Module, samples: ArrayLike
) -> NDArray[np.float64]:
    """Return probabilities (n, K), float64, of samples (n, ...) before normalization.

    The model computes where its weights are, in the batches and with the arithmetic of its run.
    """
    if has_user_loss(claims):
        raise RunError(
            "this run has a loss of its own, so its outputs are no probabilities of classes: call "
            "its model, run.model(inputs)"
        )
    rows = as_rows(samples)
    if (scale := claims["data"]["scale"]) is not None:
        rows = Scale(tuple(scale["mean"]), tuple(scale["deviation"])).apply(rows)
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    precision = "fp32" if device.type == "cpu" else config.execution.precision
    config = configure_execution(
        config.change(execution={"device": device.type, "mode": "eager", "precision": precision})
    )
    move_model(model, device, rows.ndim == 4)
    labels = np.zeros((len(rows), len(claims["data"]["classes"])), dtype=np.uint8)
    # Only the loss's map to probabilities is used, which does not depend on the labels.
    loss = make_loss(
        config.loss, labels, claims["data"]["task"], model, device, config.execution.arithmetic
    )
    split = make_split(
        Arrays(rows, labels, np.arange(len(rows)).astype(str)), device, config.execution.storage
    )
    try:
        return predict(model, split, loss, config)
    except (SeedlessError, torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:  # the model may be a user's: whatever it raises is the message
        if "allocate memory" in str(error):
            raise
        raise DataError(
            f"the model cannot process samples of shape {rows.shape[1:]}; expected the "
            f"shape that it was trained on: {type(error).__name__}: {error}"
        ) from error
