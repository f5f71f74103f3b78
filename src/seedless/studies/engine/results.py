"""The results of a grid: scores by arm and replicate; failed runs are counted, never left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from seedless.core.digests import digest_value
from seedless.core.errors import StudyError
from seedless.studies.engine.fold_pooling import pool_outcomes
from seedless.studies.engine.grid import Grid, Point
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.store import Outcome, Store
from seedless.studies.engine.table import Published

MEASURES = {"macro_auc": "macro AUC", "accuracy": "accuracy"}


@dataclass(frozen=True)
class Results:
    """The outcome of every point of a grid, in the order of the grid.

    Attributes:
        options: what the study was run on.
        measure: which score of a run counts, by its name in metrics.json.
        measured: what the study's own `measure` returned; None where it measures nothing.
    """

    grid: Grid
    outcomes: tuple[Outcome, ...]
    options: StudyOptions
    measure: str = "macro_auc"
    measured: Any = None

    def outcomes_of(self, arm: str, block: str | None = None) -> tuple[Outcome, ...]:
        """Return the outcomes of an arm, in one block or in all."""
        return tuple(
            one
            for one in self.outcomes
            if one.point.arm == arm and block in (None, one.point.block)
        )

    def scores(
        self, arm: str, block: str | None = None, *, class_name: str | None = None
    ) -> dict[str, float]:
        """Return the test scores of an arm by replicate: the measure, or the AUC of one class.

        Failed runs have no score, and neither have classes without positives.
        """
        scores = {}
        for (place, name, replicate), metrics in self.replicates.items():
            if name == arm and block in (None, place) and metrics is not None:
                score = read_score(metrics, class_name, self.measure)
                if score is not None:
                    scores[replicate] = score
        return scores

    def mark_published(self, known: Published | None) -> Published | None:
        """Return a published value, marked where ours were not made as it was."""
        return known and replace(known, comparable=self.options.as_published)

    @cached_property
    def replicates(self) -> dict[tuple[str, str, str], dict[str, Any] | None]:
        """The metrics of each (block, arm, replicate); None where one of its runs failed.

        For a replicate of one run per fold, the metrics are over all test predictions together.
        """
        groups: dict[tuple[str, str, str], list[Outcome]] = {}
        for one in self.outcomes:
            key = (one.point.block, one.point.arm, one.point.replicate)
            groups.setdefault(key, []).append(one)
        return {
            key: pool_outcomes(runs) if runs[0].point.part else runs[0].metrics
            for key, runs in groups.items()
        }

    def count(self, arm: str, block: str | None = None) -> tuple[int, int, int]:
        """Return how many runs an arm has, how many failed, and how many ended at chance."""
        outcomes = self.outcomes_of(arm, block)
        failed = sum(not one.ok for one in outcomes)
        return len(outcomes), failed, sum(one.ok and not one.converged for one in outcomes)

    def classes(self, block: str | None = None) -> dict[str, int]:
        """Return the classes of a block's test set with their number of positives."""
        for (place, _, _), metrics in self.replicates.items():
            if block in (None, place) and metrics is not None and "test" in metrics:
                parts = metrics["test"]["classes"]
                return {name: int(part["positives"]) for name, part in parts.items()}
        return {}


def read_score(
    metrics: Mapping[str, object], class_name: str | None = None, measure: str = "macro_auc"
) -> float | None:
    """Return the measure of a run on its test set, or the AUC of one class; None without either."""
    test = metrics.get("test")
    if not isinstance(test, Mapping):
        return None
    score = (
        test.get(measure) if class_name is None else test["classes"].get(class_name, {}).get("auc")
    )
    return None if score is None else float(score)


def read_results(grid: Grid, store: Store, options: StudyOptions) -> Results:
    """Return the outcomes of a grid; a run that was never started is an error.

    Points with the same configuration share one run, which is read and validated once.
    """
    outcomes = {point.key: store.read(point) for point in grid.runs}
    check_same_data(tuple(outcomes.values()))
    return Results(
        grid,
        tuple(replace(outcomes[point.key], point=point) for point in grid.points),
        options,
    )


def check_same_data(outcomes: Sequence[Outcome]) -> None:
    """Refuse runs whose settings name the same data, and which were made from different records."""
    first: dict[str, Outcome] = {}
    for one in outcomes:
        settings = one.point.config.identity()["data"]
        folds = dict.fromkeys(("test_fold", "val_fold", "normalize"))  # they do not choose records
        known = first.setdefault(digest_value({**settings, **folds}), one) if one.ok else one
        if known.data != one.data:
            raise StudyError(
                f"{known.run} and {one.run} were trained on different records of "
                f"{settings['name']}: {known.data} and {one.data}. They cannot be compared; remove "
                "the one that was made from the wrong data"
            )


def describe_varying_seeds(points: tuple[Point, ...]) -> str:
    """Return in words which seeds differ between the replicates of an arm."""
    seeds: dict[str, set[Any]] = {
        "initialization": {point.config.init.seed for point in points},
        "order": {(point.config.order.seed, point.config.order.offset) for point in points},
    }
    varying = [name for name, values in seeds.items() if len(values) > 1]
    return " and ".join(varying) or "nothing"
