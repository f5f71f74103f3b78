"""Predictions of a finished run on another dataset."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seedless.core.config import Config, DataConfig
from seedless.core.dataset import Dataset
from seedless.core.digests import digest_samples
from seedless.core.errors import ConfigError, DataError, SeedlessError
from seedless.data.leads import spell_lead
from seedless.data.loading import load as load_data
from seedless.data.model_inputs import Arrays, sort_records
from seedless.data.normalize import Scale
from seedless.evaluate.decisions import Threshold
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.numerics.saved_flags import run_by_itself
from seedless.proof.receipt import get_content_digest
from seedless.runs.model_preparation import move_model
from seedless.runs.opened_run import load_model
from seedless.runs.prepare import USER_MODEL, configure_execution, make_split
from seedless.runs.seal import predict_split
from seedless.runs.validation import ValidatedRun
from seedless.train.loss import make_loss

WHOLE = "all"  # every record of a dataset, whatever its split
_SPLITS = {"validation": "val"}  # the name of a split in a run -> its name in a dataset


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """Predictions to be scored, with their classes and thresholds.

    Attributes:
        name: of the dataset.
        left_out: classes that only the "run", or only the "data", has.
        dataset: the source of the records' sex and age; None where they are not needed.
        trained: how many of the records the run was trained on; None where that is not known.
    """

    name: str
    scored: SplitPredictions
    classes: tuple[str, ...]
    thresholds: tuple[Threshold, ...]
    left_out: Mapping[str, tuple[str, ...]]
    dataset: Dataset | None
    trained: int | None = None


def predict_external(
    opened: ValidatedRun,
    chosen: Config,
    predictions: Predictions,
    thresholds: tuple[Threshold, ...],
    split: str,
) -> ScoredSet:
    """Predict with the weights of a run on another dataset.

    Nothing of the run changes: weights, normalization and thresholds are its own. Samples must have
    its leads, sampling rate and shape; classes are matched by name.
    """
    run, config = opened.path, opened.config
    refuse_user_model(
        run, config, "and its model is yours: predict with seedless.load(run, model=...)"
    )
    # [Step 1] Read both, and check that the task is the same and a class in common.
    finished = load_model(opened)
    facts = finished.claims["data"]
    dataset = sort_records(load_data(chosen.data))  # so that batches are those of the run
    if dataset.task != predictions.task:
        raise DataError(
            f"{run} is {predictions.task}, {dataset.name} is {dataset.task}: its predictions "
            "cannot be compared with these labels"
        )
    columns = [k for k, name in enumerate(predictions.classes) if name in dataset.classes]
    if not columns:
        raise DataError(
            f"{run} and {dataset.name} have no class in common: {', '.join(predictions.classes)} "
            f"against {', '.join(dataset.classes)}"
        )
    # [Step 2] Take the split, with the samples and the labels as the run has them.
    part = _take_split(dataset, split)
    samples = _match_samples(part, facts, run)
    classes = tuple(predictions.classes[k] for k in columns)
    labels = part.Y[:, [dataset.classes.index(name) for name in classes]]
    rows = np.arange(len(labels))
    if dataset.task == "multi-class":
        rows = np.flatnonzero(labels.any(axis=1))  # drop records of classes the run lacks
        if len(rows) == 0:
            raise DataError(f"{dataset.name}: no record of its {split} split is of these classes")
    # [Step 3] Predict, and keep the classes in common.
    scale = Scale(tuple(facts["scale"]["mean"]), tuple(facts["scale"]["deviation"]))
    predicted = _infer(config, finished.model, scale.apply(samples), part, len(predictions.classes))
    features = None if predicted.features is None else predicted.features[rows]
    scored = SplitPredictions(
        predicted.ids[rows], predicted.probabilities[rows][:, columns], labels[rows], features
    )
    left_out = {
        "run": tuple(name for name in predictions.classes if name not in classes),
        "data": tuple(name for name in dataset.classes if name not in classes),
    }
    limits = tuple(thresholds[k] for k in columns)
    # [Step 4] Count the records that the run was trained on: their scores say little of new data.
    trained = count_trained(config.data, get_content_digest(finished.claims), samples[rows])
    return ScoredSet(dataset.name, scored, classes, limits, left_out, dataset, trained)


@run_by_itself()
def _infer(
    config: Config,
    model: torch.nn.Module,
    samples: NDArray[np.float32],
    part: Dataset,
    width: int,
) -> SplitPredictions:
    """Return the predictions for samples, on the device of the run where this machine has it."""
    device = config.execution.device if torch.cuda.is_available() else "cpu"
    plain = {"mode": "eager", "device": device, "storage": "host"}
    if device == "cpu" and config.execution.precision == "tf32":
        plain["precision"] = "fp32"
    configured = configure_execution(config.change(execution=plain))
    target = torch.device(configured.execution.device)
    labels = np.zeros((len(samples), width), dtype=np.uint8)  # not used
    split = make_split(Arrays(samples, labels, part.ids), target, "host")
    arithmetic = configured.execution.arithmetic
    loss = make_loss(configured.loss, labels, part.task, model, target, arithmetic)
    move_model(model, target, samples.ndim == 4)
    return predict_split(model, split, loss, configured)


def _take_split(dataset: Dataset, split: str) -> Dataset:
    if split == WHOLE:
        return dataset
    rows = dataset.rows(_SPLITS.get(split, split))
    if len(rows) == 0:
        raise DataError(f"{dataset.name}: the {split} split is empty; --split all takes everything")
    return dataset.take(rows)


def _match_samples(part: Dataset, facts: Mapping[str, Any], run: Path) -> NDArray[Any]:
    """Return the samples with the leads of the run, by name; refuse another rate or shape."""
    samples = part.X
    if facts["leads"] is not None and part.leads is not None:
        names = [spell_lead(name) for name in part.leads]
        missing = [name for name in facts["leads"] if spell_lead(name) not in names]
        if missing:
            raise DataError(
                f"{run} was trained on leads {', '.join(facts['leads'])}; {part.name} lacks "
                f"{', '.join(missing)}"
            )
        places = [names.index(spell_lead(name)) for name in facts["leads"]]
        if places != list(range(len(names))):
            samples = samples[:, places]
    if facts["fs"] is not None and part.fs is not None and facts["fs"] != part.fs:
        raise DataError(
            f"{run} was trained on {facts['fs']:g} samples a second, {part.name} has {part.fs:g}; "
            f"read it with --set data.fs={facts['fs']:g}"
        )
    if list(samples.shape[1:]) != facts["shape"]:
        raise DataError(
            f"{run} was trained on samples of shape {tuple(facts['shape'])}, {part.name} has "
            f"{samples.shape[1:]}: the model cannot take these"
        )
    return samples


def count_trained(data: DataConfig, digest: str, samples: NDArray[Any]) -> int | None:
    """Return how many samples (n, ...) have the content of one of the run's training records.

    ``data`` and ``digest`` are those of the run. None where its data cannot be read here with that
    digest: then nothing is known. A record that was resampled or filtered counts as another record.
    """
    try:
        own = load_data(data)
    except SeedlessError:
        return None
    if own.digest != digest:
        return None
    trained = {row.tobytes() for row in own.digests[own.rows("train")]}
    return sum(row.tobytes() in trained for row in digest_samples(samples))


def refuse_user_model(run: Path, config: Config, why: str) -> None:
    """Refuse a run of `fit`, whose model and arrays are not in its folder."""
    if config.model.name == USER_MODEL:
        raise ConfigError(f"{run} is a run of fit(), {why}")
