"""Score a finished run: from its predictions, or on other data with its weights.

On other data nothing of the run changes: its weights, its scale and its thresholds are what they
were. Samples must come as the run had them (leads, rate, shape); classes are matched by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seedless.analysis.overlap import count_trained
from seedless.core.config import Config, DataConfig, override
from seedless.core.dataset import Dataset
from seedless.core.errors import ConfigError, DataError, RunError
from seedless.data.leads import spell
from seedless.data.load import load as load_data
from seedless.data.normalize import Scale
from seedless.evaluate.decisions import Threshold
from seedless.evaluate.predictions import Predictions, Scored, read_predictions
from seedless.evaluate.scores import RESAMPLES, find_thresholds, score_split
from seedless.evaluate.subgroup import Subgroups, band_ages, score_subgroups
from seedless.runs.folder import read_config
from seedless.runs.opening import load
from seedless.runs.prepare import USER_MODEL, configure_execution, make_split, move_model
from seedless.runs.records import Arrays, sort_records
from seedless.runs.seal import predict_split
from seedless.train.loss import make_loss

ATTRIBUTES = ("sex", "age")
WHOLE = "all"
_SPLITS = {"validation": "val"}  # what a run calls a split, and what a dataset does


@dataclass(frozen=True)
class Evaluation:
    """Scores of a run on one split.

    Attributes:
        data: the dataset's name.
        scores: as in metrics.json.
        left_out: classes that only the run, or only the data, has: in no score.
        subgroups: scores by sex or age, where asked for.
        trained: how many of the records, of other data, the run was trained on; None where its own
            data cannot be read here to tell.
    """

    run: str
    data: str
    split: str
    task: str
    scores: Mapping[str, Any]
    left_out: Mapping[str, tuple[str, ...]]
    subgroups: Subgroups | None = None
    trained: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            **{name: getattr(self, name) for name in ("run", "data", "split", "task", "scores")},
            "left_out": {side: list(names) for side, names in self.left_out.items()},
            "trained": self.trained,
            "subgroups": None if self.subgroups is None else self.subgroups.as_dict(),
        }


@dataclass(frozen=True, eq=False)
class _Judged:
    """What is scored: records, the classes and thresholds they are scored by, and attributes."""

    name: str
    scored: Scored
    classes: tuple[str, ...]
    thresholds: tuple[Threshold, ...]
    left_out: Mapping[str, tuple[str, ...]]
    dataset: Dataset | None
    trained: int | None = None


def evaluate(
    run: str | Path,
    *,
    data: str | None = None,
    settings: Sequence[str] = (),
    split: str = "test",
    by: str | None = None,
    resamples: int = RESAMPLES,
) -> Evaluation:
    """Score a finished run.

    Args:
        run: the run folder.
        data: another dataset to predict on, by name; the run's own predictions without it.
        settings: where and how that dataset is read, such as "data.path=...".
        split: "test", "validation" or "train"; of another dataset also "all".
        by: "sex" or "age", to score each group by itself.
        resamples: of the macro mean's bootstrap interval.
    """
    path = Path(run)
    predictions = read_predictions(path)
    config = read_config(path)
    if by is not None and by not in ATTRIBUTES:
        raise ConfigError(f"expected groups by {' or '.join(ATTRIBUTES)}, got {by!r}")
    if odd := [item for item in settings if not item.strip().startswith("data.")]:
        raise ConfigError(f"expected settings of the data, such as data.path=..., got {odd[0]!r}")
    base = config if data is None else config.change(data=DataConfig(name=data).model_dump())
    chosen = override(base, settings)
    source, thresholds = find_thresholds(predictions)
    if data is not None or settings:
        judged = _predict(path, config, chosen, predictions, thresholds, split)
    else:
        judged = _recall(path, config, predictions, thresholds, split, by is not None)
    task = predictions.task
    scores = score_split(judged.scored, judged.classes, task, judged.thresholds, source, resamples)
    groups = None
    if by is not None:
        attribute = _look_up(judged, by)
        groups = score_subgroups(
            judged.scored, judged.classes, attribute, judged.thresholds, by, resamples
        )
    left_out, trained = judged.left_out, judged.trained
    return Evaluation(str(run), judged.name, split, task, scores, left_out, groups, trained)


def _recall(
    run: Path,
    config: Config,
    predictions: Predictions,
    thresholds: tuple[Threshold, ...],
    split: str,
    attributes: bool,
) -> _Judged:
    """Take what a run predicted when it was made."""
    if split not in predictions.splits:
        there = " or ".join(predictions.splits)
        raise RunError(f"{run} has no predictions for {split!r}: choose --split {there}")
    dataset = None
    if attributes:
        _refuse_given(run, config, "whose records have no sex and no age")
        dataset = load_data(config.data)
    name = Path(config.data.name).name
    left_out: Mapping[str, tuple[str, ...]] = {"run": (), "data": ()}
    scored = predictions.splits[split]
    return _Judged(name, scored, predictions.classes, thresholds, left_out, dataset)


def _predict(
    run: Path,
    config: Config,
    chosen: Config,
    predictions: Predictions,
    thresholds: tuple[Threshold, ...],
    split: str,
) -> _Judged:
    """Predict with a run's weights on a dataset."""
    _refuse_given(run, config, "and its model is yours: predict with seedless.load(run, model=...)")
    finished = load(run)
    facts = finished.claims["data"]
    dataset = sort_records(load_data(chosen.data))  # so that batches are those of the run
    if dataset.task != predictions.task:
        raise DataError(
            f"{run} is {predictions.task}, {dataset.name} is {dataset.task}: its answers cannot be "
            "held against these labels"
        )
    columns = [k for k, name in enumerate(predictions.classes) if name in dataset.classes]
    if not columns:
        raise DataError(
            f"{run} and {dataset.name} have no class in common: {', '.join(predictions.classes)} "
            f"against {', '.join(dataset.classes)}"
        )
    part = _take_split(dataset, split)
    samples = _match_samples(part, facts, run)
    classes = tuple(predictions.classes[k] for k in columns)
    labels = part.Y[:, [dataset.classes.index(name) for name in classes]]
    rows = np.arange(len(labels))
    if dataset.task == "multi-class":
        rows = np.flatnonzero(labels.any(axis=1))  # another class is no answer to any of these
        if len(rows) == 0:
            raise DataError(f"{dataset.name}: no record of its {split} split is of these classes")
    scale = Scale(tuple(facts["scale"]["mean"]), tuple(facts["scale"]["deviation"]))
    said = _infer(config, finished.model, scale.apply(samples), part, len(predictions.classes))
    features = None if said.features is None else said.features[rows]
    scored = Scored(said.ids[rows], said.probabilities[rows][:, columns], labels[rows], features)
    left_out = {
        "run": tuple(name for name in predictions.classes if name not in classes),
        "data": tuple(name for name in dataset.classes if name not in classes),
    }
    limits = tuple(thresholds[k] for k in columns)
    trained = count_trained(config.data, facts["digest"], samples[rows])
    return _Judged(dataset.name, scored, classes, limits, left_out, dataset, trained)


def _infer(
    config: Config,
    model: torch.nn.Module,
    samples: NDArray[np.float32],
    part: Dataset,
    width: int,
) -> Scored:
    """Return what a model says of samples, on the device of its run where that is here."""
    device = config.execution.device if torch.cuda.is_available() else "cpu"
    plain = {"mode": "eager", "device": device, "storage": "host"}
    if device == "cpu" and config.execution.precision == "tf32":
        plain["precision"] = "fp32"
    settled = configure_execution(config.change(execution=plain))
    there = torch.device(settled.execution.device)
    labels = np.zeros((len(samples), width), dtype=np.uint8)  # not looked at
    split = make_split(Arrays(samples, labels, part.ids), there, "host")
    arithmetic = settled.execution.arithmetic
    loss = make_loss(settled.loss, labels, part.task, model, there, arithmetic)
    move_model(model, there, samples.ndim == 4)
    return predict_split(model, split, loss, settled)


def _take_split(dataset: Dataset, split: str) -> Dataset:
    if split == WHOLE:
        return dataset
    rows = dataset.rows(_SPLITS.get(split, split))
    if len(rows) == 0:
        raise DataError(f"{dataset.name}: the {split} split is empty; --split all takes everything")
    return dataset.take(rows)


def _match_samples(part: Dataset, facts: Mapping[str, Any], run: Path) -> NDArray[Any]:
    """Return the samples as the run had them: its leads by name; refuse another rate or shape."""
    samples = part.X
    if facts["leads"] is not None and part.leads is not None:
        names = [spell(name) for name in part.leads]
        missing = [name for name in facts["leads"] if spell(name) not in names]
        if missing:
            raise DataError(
                f"{run} was trained on leads {', '.join(facts['leads'])}; {part.name} lacks "
                f"{', '.join(missing)}"
            )
        places = [names.index(spell(name)) for name in facts["leads"]]
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
            f"{samples.shape[1:]}: the model cannot be asked about these"
        )
    return samples


def _look_up(judged: _Judged, by: str) -> NDArray[np.str_]:
    """Return the group of each record judged."""
    dataset = judged.dataset
    values = None if dataset is None else getattr(dataset, by)
    if dataset is None or values is None:
        raise DataError(f"{judged.name} does not say the {by} of its records")
    rows = {str(name): row for row, name in enumerate(dataset.ids)}
    missing = [name for name in judged.scored.ids.tolist() if name not in rows]
    if missing:
        raise DataError(
            f"{dataset.name} as it is read now lacks the record {missing[0]!r} that the run "
            "predicted; are these the same data?"
        )
    found = values[[rows[name] for name in judged.scored.ids.tolist()]]
    return band_ages(found) if by == "age" else np.asarray(found)


def _refuse_given(run: Path, config: Config, why: str) -> None:
    if config.model.name == USER_MODEL:
        raise ConfigError(f"{run} is a run of fit(), {why}")
