"""Pooling of folds: one score from the test predictions of several runs, each on another fold.

One fold holds two or three positives of a rare class; all folds together hold twenty.

    [Step 1] `split_folds`: each replicate of a grid becomes one run per fold, tested on that fold.
    [Step 2] The runs are executed like any others.
    [Step 3] `pool_outcomes`: the test predictions of a replicate's runs are put together, each
             record once, and the AUC of each class is computed over all of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seedless.core.errors import StudyError
from seedless.evaluate.auc import area_under_curve
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.studies.engine.grid import Grid, Point
from seedless.studies.engine.store import Outcome

MIN_POSITIVES = 5  # a class with fewer has no score
FOLDS = 10


def list_folds(count: int) -> list[tuple[int, int]]:
    """Return ``count`` pairs (test fold, validation fold), from fold 10 downwards.

    Each is validated on the next one, the last on fold 10. Three folds are the published ones:
    tested on 10, 9 and 8, validated on 9, 8 and 10.
    """
    if isinstance(count, bool) or not 2 <= count <= FOLDS:
        raise StudyError(f"--folds: expected from 2 to {FOLDS} folds, got {count!r}")
    tests = [FOLDS - place for place in range(count)]
    return list(zip(tests, [*tests[1:], tests[0]], strict=True))


def split_folds(grid: Grid, count: int | None, blocks: Collection[str] | None = None) -> Grid:
    """Return the grid with each run, in these blocks or in all, replaced by one run per fold.

    Without a count the grid is returned unchanged.
    """
    if count is None:
        return grid
    points: list[Point] = []
    for point in grid.points:
        if blocks is None or point.block in blocks:
            points += [hold_out(point, test, val) for test, val in list_folds(count)]
        else:
            points.append(point)
    if not any(point.part for point in points):
        raise StudyError(f"--folds: {grid.study} has no folds to pool over on these data")
    return replace(grid, points=tuple(points))


def hold_out(point: Point, test: int, val: int) -> Point:
    """Return the point with these folds held out, as a part of a replicate."""
    config = point.config.change(data=choose_folds(test, val))
    return replace(point, config=config, part=f"test fold {test}")


def choose_folds(test: int, val: int) -> dict[str, int]:
    """Return the data settings that hold these folds out.

    The usual folds are left to the dataset's own default, so that other studies share the run.
    """
    usual = (test, val) == (FOLDS, FOLDS - 1)
    return {} if usual else {"test_fold": test, "val_fold": val}


def pool_outcomes(runs: Sequence[Outcome]) -> dict[str, Any] | None:
    """Return metrics of a replicate in the form of a run's; None where one of its runs failed."""
    if not all(one.ok for one in runs):
        return None
    return {
        "test": pool_predictions({str(one.run): one.read_predictions() for one in runs}),
        "converged": all(one.converged for one in runs),
    }


def pool_predictions(runs: Mapping[str, Predictions], least: int = MIN_POSITIVES) -> dict[str, Any]:
    """Return the AUC and positives of each class over the test predictions of several runs.

    Args:
        runs: the predictions by the name of the run, which is used in messages.
        least: a class with fewer positives has no AUC; the macro mean is over the others.
    """
    if not runs:
        raise StudyError("expected at least one run to pool, got none")
    first, classes = next((name, predictions.classes) for name, predictions in runs.items())
    parts: list[SplitPredictions] = []
    for name, predictions in runs.items():
        if predictions.classes != classes:
            raise StudyError(f"{name} has other classes than {first}: they cannot be pooled")
        if "test" not in predictions.splits:
            raise StudyError(f"{name} has no test predictions to pool")
        parts.append(predictions.splits["test"])
    ids = np.concatenate([part.ids for part in parts])
    if len(np.unique(ids)) < len(ids):
        raise StudyError(f"{first} and the runs pooled with it were tested on the same records")
    probabilities = np.concatenate([part.probabilities for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    scores: dict[str, dict[str, Any]] = {}
    for k, name in enumerate(classes):
        positives = int(labels[:, k].sum())
        enough = positives >= least
        auc = area_under_curve(probabilities[:, k], labels[:, k]) if enough else None
        scores[name] = {"auc": auc, "positives": positives}
    areas = [one["auc"] for one in scores.values() if one["auc"] is not None]
    macro = float(np.mean(areas)) if areas else None
    return {"n": len(ids), "macro_auc": macro, "classes": scores}


def explain_pooling(grid: Grid, count: int) -> str:
    """Return the note of a table whose scores are pooled."""
    alone = dict.fromkeys(point.block for point in grid.points if not point.part)
    rest = f" Not pooled, for want of folds: {'; '.join(alone)}." if alone else ""
    tests = ", ".join(str(test) for test, _ in list_folds(count))
    return (
        f"Scores are over the test predictions of {count} runs together, each with another fold "
        f"held out ({tests}), for classes with at least {MIN_POSITIVES} positives among them. "
        "Probabilities of different models are ranked as they are, so a model that says more than "
        f"another lowers the AUC: published values come from one fold and are not pooled.{rest}"
    )
