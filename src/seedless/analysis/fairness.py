"""Checks of the fairness of a comparison; each returns its warnings as sentences."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seedless.analysis.arms import ArmRuns, ScoredRun
from seedless.core.config import REPLICATE_KEYS
from seedless.core.digests import canonical_json
from seedless.core.errors import StatsError, UnknownNameError
from seedless.core.mismatch import compare_values
from seedless.core.registry import suggest
from seedless.evaluate.auc import FEW_POSITIVES


def check_same_problem(a: ArmRuns, b: ArmRuns) -> None:
    """Refuse runs on different data, tasks or classes."""
    first, *rest = [*a.runs, *b.runs]
    for run in rest:
        for difference in compare_values(first.problem, run.problem):
            raise StatsError(
                f"{first.path} and {run.path} are not runs of the same problem: {difference.field} "
                f"is {difference.recorded} and {difference.here}. Only scores on the same data can "
                "be compared"
            )


def check_settings(a: ArmRuns, b: ArmRuns, factors: Sequence[str]) -> list[str]:
    """Warn of settings in which the arms differ besides the factors that are compared."""
    known = sorted({name for run in (*a.runs, *b.runs) for name in run.settings})
    _check_factors(factors, known)
    values = {name: (_list_values(a, name), _list_values(b, name)) for name in known}
    differing = {
        name: pair
        for name, pair in values.items()
        if pair[0] != pair[1] and name not in REPLICATE_KEYS
    }
    for factor in factors:
        if factor not in differing:
            shown = " and ".join(map(str, values[factor][0]))
            raise StatsError(f"the arms do not differ in {factor}: it is {shown} in both")
    warnings = []
    for arm, side in ((a, 0), (b, 1)):
        mixed = [
            name
            for name in known
            if len(values[name][side]) > 1 and name not in (*REPLICATE_KEYS, *factors)
        ]
        if mixed:
            named = "; ".join(f"{name} is {_join(values[name][side])}" for name in mixed)
            warnings.append(f"arm {arm.name} has runs of different settings: {named}")
    rest = [name for name in differing if name not in factors]
    named = "; ".join(
        f"{n} ({_join(differing[n][0])} against {_join(differing[n][1])})" for n in rest
    )
    if factors and rest:
        warnings.append(f"besides {', '.join(factors)} the arms differ in {named}")
    elif len(rest) > 1:
        warnings.append(
            f"the arms differ in {len(rest)} settings, so that no difference can be "
            f"attributed to one of them: {named}"
        )
    elif known and not differing:
        warnings.append(
            "the arms have the same settings: a difference is due to chance or to the machine"
        )
    if len({run.source for run in (*a.runs, *b.runs)}) > 1:
        warnings.append("the runs were not all trained by the same source code")
    return warnings


def _check_factors(factors: Sequence[str], known: Sequence[str]) -> None:
    """Refuse factors that are not settings of the runs."""
    if factors and not known:
        raise StatsError(
            "--factor names a setting of run folders; JSON files and numbers have none"
        )
    for factor in factors:
        if factor not in known:
            raise UnknownNameError(
                f"unknown setting {factor!r}{suggest(factor, known)}; --factor takes one such as "
                "init.basis"
            )


def check_runs(a: ArmRuns, b: ArmRuns) -> list[str]:
    """Warn of runs that are counted twice, and of files that were ignored."""
    warnings = []
    for arm in (a, b):
        n, identities = len(arm.runs), Counter(run.identity for run in arm.runs)
        if len(identities) == 1 and n > 1:
            what = "have the same weights" if arm.runs[0].settings else "are the same file"
            warnings.append(
                f"all {n} runs of arm {arm.name} {what}: repeats of one deterministic run are one "
                f"observation, n = 1 and not {n}. Vary order.offset or a seed"
            )
        elif n > 1 and len(set(arm.scores)) == 1:
            warnings.append(
                f"all {n} values of arm {arm.name} are {arm.scores[0]:.6g}: if they are repeats of "
                "one deterministic run, they are one observation, n = 1"
            )
        if 1 < len(identities) < n:
            twice = next(identity for identity, count in identities.items() if count > 1)
            same = ", ".join(str(run.path) for run in arm.runs if run.identity == twice)
            warnings.append(
                f"arm {arm.name} counts some runs twice: {n} runs, {len(identities)} different; "
                f"the first that are the same: {same}"
            )
        if arm.ignored:
            shown = ", ".join(str(path) for path in arm.ignored[:3])
            warnings.append(f"arm {arm.name}: ignored what is not a folder: {shown}")
    in_b: dict[str, ScoredRun] = {run.identity: run for run in b.runs}
    shared = [(run, in_b[run.identity]) for run in a.runs if run.identity in in_b]
    if shared:
        one, two = shared[0]
        first = str(one.path) if one.path == two.path else f"{one.path} and {two.path}"
        number = "1 run is" if len(shared) == 1 else f"{len(shared)} runs are"
        warnings.append(f"{number} in both arms, {'the first ' * (len(shared) > 1)}{first}")
    return warnings


def check_positives(a: ArmRuns, b: ArmRuns) -> list[str]:
    """Warn of classes that have few positives."""
    few = {
        name: count
        for run in (*a.runs, *b.runs)
        for name, count in run.positives.items()
        if count < FEW_POSITIVES
    }
    if not few:
        return []
    named = ", ".join(f"{name} ({count})" for name, count in few.items())
    return [
        f"fewer than {FEW_POSITIVES} positives: {named}; one record changes their AUC by points"
    ]


def check_convergence(a: ArmRuns, b: ArmRuns, above: float | None) -> list[str]:
    """Warn of runs that did not converge, and say whether they are counted.

    With ``above``, those are the runs that score this or less; without, those whose own metrics say
    that they did not converge.
    """
    failed = [
        sum(run.converged is False if above is None else run.score <= above for run in arm.runs)
        for arm in (a, b)
    ]
    if not any(failed):
        return []
    counts = " and ".join(
        f"{bad} of {len(arm.runs)} in {arm.name}" for arm, bad in zip((a, b), failed, strict=True)
    )
    if above is None:
        return [f"not converged, but counted: {counts}. --converged-above sets them aside"]
    text = f"not converged, and set aside: {counts}"
    if failed[0] * len(b.runs) != failed[1] * len(a.runs):
        text += "; the arms fail unequally, so that only the runs that converged are compared"
    return [text]


def _list_values(arm: ArmRuns, name: str) -> list[Any]:
    """Return the different values of a setting within an arm."""
    distinct = {canonical_json(run.settings.get(name)): run.settings.get(name) for run in arm.runs}
    return [distinct[key] for key in sorted(distinct)]


def _join(values: Sequence[Any]) -> str:
    return ", ".join(str(value) for value in values)
