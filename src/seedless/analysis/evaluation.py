"""Scores of a finished run: of its own predictions, or of its weights on another dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seedless.analysis.evaluation_text import write_evaluation
from seedless.analysis.external_data import ScoredSet, predict_external, refuse_user_model
from seedless.core.config import Config, DataConfig, override
from seedless.core.errors import ConfigError, DataError, RunError
from seedless.core.files import AnyPath
from seedless.data.loading import load as load_data
from seedless.evaluate.decisions import Threshold
from seedless.evaluate.predictions import Predictions
from seedless.evaluate.scores import RESAMPLES, find_thresholds, score_split
from seedless.evaluate.subgroup import Subgroups, band_ages, score_subgroups
from seedless.runs.validation import open_validated

if TYPE_CHECKING:
    import pandas as pd

ATTRIBUTES = ("sex", "age")


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores of a run on one split; printed, it is the table of `seedless evaluate`.

    Attributes:
        data: the dataset's name.
        scores: as in metrics.json.
        left_out: classes that only the run, or only the data, has; they are in no score.
        subgroups: scores by sex or age, if requested.
        trained: on another dataset, how many of its records the run was trained on; None where the
            run's own data cannot be read here.
    """

    run: str
    data: str
    split: str
    task: str
    scores: Mapping[str, Any]
    left_out: Mapping[str, tuple[str, ...]]
    subgroups: Subgroups | None = None
    trained: int | None = None

    def __repr__(self) -> str:
        return write_evaluation(self)

    @property
    def classes(self) -> pd.DataFrame:
        """The scores of each class (rows) as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame.from_dict(dict(self.scores["classes"]), orient="index")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            **{name: getattr(self, name) for name in ("run", "data", "split", "task", "scores")},
            "left_out": {side: list(names) for side, names in self.left_out.items()},
            "trained": self.trained,
            "subgroups": None if self.subgroups is None else self.subgroups.as_dict(),
        }


def evaluate(
    run: AnyPath,
    *,
    data: str | None = None,
    settings: Sequence[str] = (),
    split: str = "test",
    by: str | None = None,
    resamples: int = RESAMPLES,
) -> Evaluation:
    """Return the scores of a finished run: AUCs with intervals, calibration, rates at thresholds.

    Args:
        run: the run folder.
        data: the name of another dataset to predict on; without it, the run's own predictions are
            scored.
        settings: where and how that dataset is read, such as "data.path=...".
        split: "test", "validation" or "train"; of another dataset also "all".
        by: "sex" or "age", to score each group separately.
        resamples: number of bootstrap resamples for the interval of the macro AUC.

    >>> seedless.evaluate("runs/mine").scores["macro_auc"]  # doctest: +SKIP
    0.931
    """
    path = Path(run)
    opened = open_validated(path)
    predictions, config = opened.read_predictions(), opened.config
    if by is not None and by not in ATTRIBUTES:
        raise ConfigError(f"expected groups by {' or '.join(ATTRIBUTES)}, got {by!r}")
    if odd := [item for item in settings if not item.strip().startswith("data.")]:
        raise ConfigError(f"expected settings of the data, such as data.path=..., got {odd[0]!r}")
    base = config if data is None else config.change(data=DataConfig(name=data).model_dump())
    chosen = override(base, settings)
    source, thresholds = find_thresholds(predictions)
    if data is not None or settings:
        data_set = predict_external(opened, chosen, predictions, thresholds, split)
    else:
        data_set = _read_own(path, config, predictions, thresholds, split, by is not None)
    task = predictions.task
    scores = score_split(
        data_set.scored, data_set.classes, task, data_set.thresholds, source, resamples
    )
    groups = None
    if by is not None:
        attribute = _find_groups(data_set, by)
        groups = score_subgroups(
            data_set.scored, data_set.classes, attribute, data_set.thresholds, by, resamples
        )
    left_out, trained = data_set.left_out, data_set.trained
    return Evaluation(os.fspath(run), data_set.name, split, task, scores, left_out, groups, trained)


def _read_own(
    run: Path,
    config: Config,
    predictions: Predictions,
    thresholds: tuple[Threshold, ...],
    split: str,
    attributes: bool,
) -> ScoredSet:
    """Return the predictions that the run wrote."""
    if split not in predictions.splits:
        there = " or ".join(predictions.splits)
        raise RunError(f"{run} has no predictions for {split!r}: choose --split {there}")
    dataset = None
    if attributes:
        refuse_user_model(run, config, "whose records have no sex and no age")
        dataset = load_data(config.data)
    name = Path(config.data.name).name
    left_out: Mapping[str, tuple[str, ...]] = {"run": (), "data": ()}
    scored = predictions.splits[split]
    return ScoredSet(name, scored, predictions.classes, thresholds, left_out, dataset)


def _find_groups(data_set: ScoredSet, by: str) -> NDArray[np.str_]:
    """Return the group of each record scored."""
    dataset = data_set.dataset
    values = None if dataset is None else getattr(dataset, by)
    if dataset is None or values is None:
        raise DataError(f"{data_set.name} does not say the {by} of its records")
    rows = {str(name): row for row, name in enumerate(dataset.ids)}
    missing = [name for name in data_set.scored.ids.tolist() if name not in rows]
    if missing:
        raise DataError(
            f"{dataset.name} as it is read now lacks the record {missing[0]!r} that the run "
            "predicted; are these the same data?"
        )
    attributes = values[[rows[name] for name in data_set.scored.ids.tolist()]]
    return band_ages(attributes) if by == "age" else np.asarray(attributes)
