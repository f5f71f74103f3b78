"""Scores by group of patients, such as sex and age, with intervals of the differences.

Groups come from the dataset: `Dataset.sex` ("F", "M", "" where unknown) and `Dataset.age` (years,
NaN where unknown). PTB-XL, CPSC2018, Chapman and the simulator have both, and so have long
recordings whose headers state them; a user's arrays and images have neither. A record whose group
is not known is in no group and is counted as unknown.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.errors import DataError
from seedless.evaluate.auc import area_under_curve, macro_auc
from seedless.evaluate.bootstrap import bootstrap_areas
from seedless.evaluate.decisions import Counts, Threshold, apply_thresholds, count_outcomes
from seedless.evaluate.intervals import (
    LEVEL,
    Interval,
    delong_interval,
    difference_interval,
    wilson_interval,
)
from seedless.evaluate.predictions import SplitPredictions

AGE_EDGES = (18.0, 40.0, 60.0, 80.0)


@dataclass(frozen=True)
class Rate:
    """A score and its interval; both None where it is undefined."""

    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class ClassInGroup:
    """One class within a group, and how it differs from the reference group.

    A difference is this group minus the reference; its value is None where either is undefined, and
    for the reference itself.
    """

    positives: int
    auc: Rate
    sensitivity: Rate
    specificity: Rate
    auc_difference: Rate
    sensitivity_difference: Rate


@dataclass(frozen=True)
class Group:
    """The records of one group."""

    n: int
    macro_auc: Rate
    macro_auc_difference: Rate
    classes: dict[str, ClassInGroup]


@dataclass(frozen=True)
class Subgroups:
    """Scores by group. ``reference`` is the largest group; ``unknown`` records are in none."""

    attribute: str
    reference: str
    unknown: int
    groups: dict[str, Group]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def band_ages(ages: ArrayLike, edges: Sequence[float] = AGE_EDGES) -> NDArray[np.str_]:
    """Return the band of each age, such as "18-39" and "80+"; "" where it is unknown.

    A band begins at its edge: with edges 18 and 40, an age of 18 and one of 39.9 are in "18-39".
    """
    years = np.asarray(ages, dtype=np.float64)
    limits = [0.0, *edges]
    names = [
        *(f"{low:g}-{high - 1:g}" for low, high in pairwise(limits)),
        f"{limits[-1]:g}+",
    ]
    place = np.searchsorted(np.asarray(edges, dtype=np.float64), years, side="right")
    return np.where(np.isnan(years), "", np.array(names)[np.minimum(place, len(names) - 1)])


def score_subgroups(
    scored: SplitPredictions,
    classes: Sequence[str],
    groups: ArrayLike,
    thresholds: Sequence[Threshold],
    attribute: str = "group",
    resamples: int = 400,
    level: float = LEVEL,
) -> Subgroups:
    """Return the scores of each group: ``groups`` (n,) has its name for each record, "" for none.

    Intervals are DeLong's for areas, Wilson's for rates, and those of `difference_interval` for
    differences of independent groups.
    """
    names = np.asarray(groups)
    if names.shape != scored.ids.shape or names.dtype.kind != "U":
        raise DataError(
            f"expected the name of a group for each of {len(scored)} records, got {names.dtype} of "
            f"shape {names.shape}"
        )
    known, sizes = np.unique(names[names != ""], return_counts=True)
    if len(known) == 0:
        raise DataError(f"no record has a known {attribute}: there are no groups to compare")
    reference = str(known[sizes.argmax()])
    alone = {
        str(name): _score_group(scored, classes, names == name, thresholds, resamples, level)
        for name in known
    }
    return Subgroups(
        attribute=attribute,
        reference=reference,
        unknown=int((names == "").sum()),
        groups={
            name: group if name == reference else _compare(group, alone[reference])
            for name, group in alone.items()
        },
    )


def _score_group(
    scored: SplitPredictions,
    classes: Sequence[str],
    rows: NDArray[np.bool_],
    thresholds: Sequence[Threshold],
    resamples: int,
    level: float,
) -> Group:
    probabilities, labels = scored.probabilities[rows], scored.labels[rows]
    decisions = apply_thresholds(probabilities, thresholds)
    none = Rate(None, None)
    members = {}
    for k, name in enumerate(classes):
        scores, truth = probabilities[:, k], labels[:, k]
        counts = count_outcomes(decisions[:, k], truth)
        known = thresholds[k] is not None and counts.both_kinds
        members[name] = ClassInGroup(
            positives=int(truth.sum()),
            auc=Rate(area_under_curve(scores, truth), delong_interval(scores, truth, level)),
            sensitivity=_rate(counts, "sensitivity", level) if known else none,
            specificity=_rate(counts, "specificity", level) if known else none,
            auc_difference=none,
            sensitivity_difference=none,
        )
    macro = bootstrap_areas(probabilities, labels, resamples, level).macro
    return Group(len(labels), Rate(macro_auc(probabilities, labels), macro), none, members)


def _rate(counts: Counts, name: str, level: float) -> Rate:
    hits, misses = {
        "sensitivity": (counts.tp, counts.fn),
        "specificity": (counts.tn, counts.fp),
    }[name]
    return Rate(getattr(counts, name), wilson_interval(hits, hits + misses, level))


def _compare(group: Group, reference: Group) -> Group:
    """Return a group with its differences from the reference filled in.

    The macro means are compared only where both groups have the same classes in them.
    """
    members = {
        name: replace(
            one,
            auc_difference=_subtract(one.auc, reference.classes[name].auc),
            sensitivity_difference=_subtract(one.sensitivity, reference.classes[name].sensitivity),
        )
        for name, one in group.classes.items()
    }
    alike = all(
        (one.auc.value is None) == (reference.classes[name].auc.value is None)
        for name, one in members.items()
    )
    macro = _subtract(group.macro_auc, reference.macro_auc) if alike else Rate(None, None)
    return replace(group, macro_auc_difference=macro, classes=members)


def _subtract(one: Rate, other: Rate) -> Rate:
    if one.value is None or other.value is None or one.interval is None or other.interval is None:
        return Rate(None, None)
    interval = difference_interval(one.value, one.interval, other.value, other.interval)
    return Rate(one.value - other.value, interval)
