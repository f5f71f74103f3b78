"""Churn: the records that runs decide differently.

Two models of equal AUC may still disagree about a patient. A record *flips* for a class where the
decisions of the runs are not all equal. Decisions are made at each run's own thresholds (chosen on
its validation split) or all at 0.5; for a multi-class task the decision is the most probable class.

The number of flips grows with the number of runs. The mean disagreement of two runs does not: it is
the share of records that two of the runs, taken at random, decide differently. For two runs,
McNemar's test asks whether one of them is right more often than the other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.evaluate.churn_text import write_churn
from seedless.evaluate.decisions import (
    DEFAULT_THRESHOLD,
    Threshold,
    apply_thresholds,
    pick_most_probable,
)
from seedless.evaluate.intervals import LEVEL, Interval, wilson_interval
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.evaluate.scores import find_thresholds

THRESHOLDS = ("own", "half")


@dataclass(frozen=True)
class Flip:
    """A record that runs decide differently, with the probability and the decision of each run."""

    id: str
    probabilities: tuple[float, ...]
    calls: tuple[int, ...]


@dataclass(frozen=True)
class Share:
    """``count`` of ``n`` records, and Wilson's interval of the rate."""

    count: int
    n: int
    rate: float
    interval: Interval


@dataclass(frozen=True)
class McNemar:
    """McNemar's exact test (1947) of two models on the same records.

    Attributes:
        first_only: records that only the first model decides correctly.
        second_only: records that only the second does.
        p: two-sided, from a binomial distribution of ``first_only`` in their sum with share 1/2.
    """

    first_only: int
    second_only: int
    p: float


@dataclass(frozen=True)
class ClassChurn:
    """The flips of one class; ``thresholds`` are those of each run, None where 0.5 was used.

    ``disagreement`` and ``mcnemar`` are as in `Churn`, for this class alone.
    """

    flips: Share
    disagreement: float
    mcnemar: McNemar | None
    thresholds: tuple[Threshold, ...]
    records: tuple[Flip, ...]


@dataclass(frozen=True, repr=False)
class Churn:
    """The disagreements of runs; printed, it is the table of `seedless churn`.

    Attributes:
        runs: their names.
        records: ids of the records with a flip in any class.
        exact: their share of all records.
        disagreement: mean over pairs of runs of the share of records with a flip in any class.
        mcnemar: for two runs, the test of how many records have all classes right; else None.
    """

    runs: tuple[str, ...]
    split: str
    task: str
    exact: Share
    disagreement: float
    mcnemar: McNemar | None
    classes: Mapping[str, ClassChurn]
    records: tuple[str, ...]

    def __repr__(self) -> str:
        return write_churn(self)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def compare_decisions(
    runs: Mapping[str, Predictions],
    split: str = "test",
    thresholds: str = "own",
    level: float = LEVEL,
) -> Churn:
    """Return the records that two or more models decide differently; records are matched by id."""
    if len(runs) < 2:
        raise DataError(f"expected two runs or more to compare, got {len(runs)}")
    if thresholds not in THRESHOLDS:
        raise DataError(f"expected thresholds own or half, got {thresholds!r}")
    names, several = tuple(runs), tuple(runs.values())
    check_comparable(names, several, split)
    first = several[0]
    limits = [_find_limits(one, thresholds) for one in several]
    order = np.argsort(first.splits[split].ids)
    ids = first.splits[split].ids[order]
    sorted_rows = [np.argsort(one.splits[split].ids) for one in several]
    probabilities = np.stack(
        [
            one.splits[split].probabilities[rows]
            for one, rows in zip(several, sorted_rows, strict=True)
        ]
    )
    calls = np.stack(
        [_decide(p, own, first.task) for p, own in zip(probabilities, limits, strict=True)]
    )
    flipped = (calls != calls[0]).any(axis=0)
    correct = calls == first.splits[split].labels[order]
    classes = {
        name: ClassChurn(
            flips=find_share(flipped[:, k], level),
            disagreement=_mean_disagreement(calls[:, :, [k]]),
            mcnemar=_compare_two(correct[:, :, k]),
            thresholds=tuple(own[k] for own in limits),
            records=_list_flips(ids, probabilities[:, :, k], calls[:, :, k], flipped[:, k]),
        )
        for k, name in enumerate(first.classes)
    }
    whole = flipped.any(axis=1)
    return Churn(
        runs=names,
        split=split,
        task=first.task,
        exact=find_share(whole, level),
        disagreement=_mean_disagreement(calls),
        mcnemar=_compare_two(correct.all(axis=2)),
        classes=classes,
        records=tuple(ids[whole].tolist()),
    )


def _find_limits(predictions: Predictions, thresholds: str) -> tuple[Threshold, ...]:
    if thresholds == "half":
        return (DEFAULT_THRESHOLD,) * len(predictions.classes)
    return find_thresholds(predictions)[1]


def _decide(
    probabilities: NDArray[np.float64], limits: Sequence[Threshold], task: str
) -> NDArray[np.uint8]:
    return (
        pick_most_probable(probabilities)
        if task == "multi-class"
        else apply_thresholds(probabilities, limits)
    )


def find_share(hits: NDArray[np.bool_], level: float) -> Share:
    """Return how many of (n,) records are hit, with the interval of their rate."""
    count, n = int(hits.sum()), len(hits)
    interval = wilson_interval(count, n, level)
    if interval is None:
        raise DataError("expected records to compare, found none")
    return Share(count, n, count / n, interval)


def _mean_disagreement(calls: NDArray[np.uint8]) -> float:
    """Return the share of records that two runs decide differently, mean over all pairs of runs.

    ``calls`` are the decisions (runs, n, classes).
    """
    counts = [int((a != b).any(axis=1).sum()) for a, b in combinations(calls, 2)]
    return sum(counts) / (len(counts) * len(calls[0]))


def _compare_two(correct: NDArray[np.bool_]) -> McNemar | None:
    """Return McNemar's test from which records each run has right (runs, n); None if not two."""
    if len(correct) != 2:
        return None
    return mcnemar_test(
        int((correct[0] & ~correct[1]).sum()), int((correct[1] & ~correct[0]).sum())
    )


def mcnemar_test(first_only: int, second_only: int) -> McNemar:
    """Return McNemar's exact test from the records that only one of two models has right.

    >>> mcnemar_test(1, 8).p
    0.0390625
    """
    n, fewer = first_only + second_only, min(first_only, second_only)
    # Whole numbers until the last step: the same p on every machine.
    tail = sum(math.comb(n, k) for k in range(fewer + 1))
    return McNemar(first_only, second_only, min(1.0, float(Fraction(2 * tail, 2**n))))


def _list_flips(
    ids: NDArray[np.str_],
    probabilities: NDArray[np.float64],
    calls: NDArray[np.uint8],
    flipped: NDArray[np.bool_],
) -> tuple[Flip, ...]:
    return tuple(
        Flip(str(ids[row]), tuple(probabilities[:, row].tolist()), tuple(calls[:, row].tolist()))
        for row in np.flatnonzero(flipped)
    )


def check_comparable(names: Sequence[str], several: Sequence[Predictions], split: str) -> None:
    """Refuse runs that differ in classes, task, records or labels."""
    first = several[0]
    for name, one in zip(names, several, strict=True):
        if split not in one.splits:
            raise DataError(f"{name} has splits {', '.join(one.splits)}; got {split!r}")
        if one.task != first.task:
            raise DataError(f"{names[0]} is {first.task}, {name} is {one.task}: nothing to compare")
        if one.classes != first.classes:
            odd = sorted({*one.classes} ^ {*first.classes})
            what = f"{odd[0]!r} is in one of them" if odd else "their order differs"
            raise DataError(f"{names[0]} and {name} are about different classes: {what}")
        _check_records(names[0], first.splits[split], name, one.splits[split])


def _check_records(
    name: str, first: SplitPredictions, other: str, second: SplitPredictions
) -> None:
    for holder, lacking, ids in (
        (name, other, np.setdiff1d(first.ids, second.ids)),
        (other, name, np.setdiff1d(second.ids, first.ids)),
    ):
        if len(ids):
            more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
            listed = ", ".join(ids[:3].tolist())
            raise DataError(
                f"{lacking} lacks records that {holder} has: {listed}{more}; compare runs over the "
                "same records"
            )
    labels = [one.labels[np.argsort(one.ids)] for one in (first, second)]
    if (labels[0] != labels[1]).any():
        row = int(np.flatnonzero((labels[0] != labels[1]).any(axis=1))[0])
        raise DataError(
            f"{name} and {other} label {np.sort(first.ids)[row]} differently: not the same data"
        )
