"""What the trainings of the default start show: the tests that the protocol fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from benchmarks.starts.plan import ALPHA, CANDIDATES, EPOCHS, MARGIN, NETWORKS, OWN, STARTS
from seedless.stats.holm_correction import holm

Row = Mapping[str, Any]
Scores = dict[str, dict[str, float]]  # start -> network -> mean AUC


@dataclass(frozen=True)
class Paired:
    """The difference of two starts over networks.

    Attributes:
        lower: p of "the first is worse by the margin or more", one-sided.
        two_sided: p of "there is no difference".
    """

    first: str
    second: str
    n: int
    mean: float
    sd: float
    low: float
    high: float
    lower: float
    two_sided: float


@dataclass(frozen=True)
class Choice:
    """The default start, or None where no candidate is shown to cost less than the margin.

    Attributes:
        tests: each candidate against the library's own start.
        adjusted: p of "it costs the margin or more", after Holm's correction.
        between: scrambled against canonical_kaiming.
    """

    start: str | None
    tests: dict[str, Paired]
    adjusted: dict[str, float]
    between: Paired


def list_networks(rows: Iterable[Row]) -> list[str]:
    """Return the networks of the plan of which no training ended in an error."""
    failed = {row["network"] for row in rows if "error" in row}
    return [name for name in NETWORKS if name not in failed]


def count_replicates(rows: Iterable[Row], networks: Sequence[str] = NETWORKS) -> int:
    """Return the largest number of first replicates that every network, start and data set has."""
    there = {(r["network"], r["start"], r["data"], r["replicate"]) for r in rows}
    count = 0
    while networks and all(
        (network, start, data, count) in there
        for network in networks
        for start in STARTS
        for data in EPOCHS
    ):
        count += 1
    return count


def average(
    rows: Iterable[Row],
    replicates: int,
    data: str | None = None,
    networks: Sequence[str] = NETWORKS,
) -> Scores:
    """Return each network's mean AUC over replicates and data sets, or over one data set alone."""
    found: dict[str, dict[str, list[float]]] = {start: {} for start in STARTS}
    for row in rows:
        is_chosen = row["network"] in networks and row["replicate"] < replicates
        if is_chosen and data in (None, row["data"]):
            found[row["start"]].setdefault(row["network"], []).append(row["auc"])
    return {
        start: {network: math.fsum(values) / len(values) for network, values in networks.items()}
        for start, networks in found.items()
    }


def compare(scores: Scores, first: str, second: str) -> Paired:
    """Return the paired comparison of two starts, with a 90 % interval of the difference."""
    networks = [name for name in scores[first] if name in scores[second]]
    differences = [scores[first][name] - scores[second][name] for name in networks]
    n = len(differences)
    mean = math.fsum(differences) / n
    sd = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n - 1))
    error = sd / math.sqrt(n)
    half = float(stats.t.ppf(1 - ALPHA, n - 1)) * error
    lower = float(stats.t.sf((mean + MARGIN) / error, n - 1))
    two_sided = 2 * float(stats.t.sf(abs(mean) / error, n - 1))
    return Paired(first, second, n, mean, sd, mean - half, mean + half, lower, two_sided)


def choose_default(scores: Scores) -> Choice:
    """Return the default by the rule of the protocol, with the tests that it rests on."""
    tests = {candidate: compare(scores, candidate, OWN) for candidate in CANDIDATES}
    corrected = holm({name: test.lower for name, test in tests.items()}, ALPHA)
    shown = [name for name in CANDIDATES if corrected.survives[name]]
    between = compare(scores, "scrambled", "canonical_kaiming")
    if "scrambled" in shown and between.mean > 0 and between.two_sided < ALPHA:
        shown.insert(0, "scrambled")
    return Choice(shown[0] if shown else None, tests, dict(corrected.adjusted), between)


def find_power(sd: float, n: int, margin: float = MARGIN, alpha: float = ALPHA) -> float:
    """Return the power of the one-sided test of n networks where the true difference is 0."""
    critical = float(stats.t.ppf(1 - alpha, n - 1))
    return float(stats.nct.sf(critical, n - 1, margin * math.sqrt(n) / sd))
