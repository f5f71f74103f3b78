"""The values of the section on what a seed changes: two ordinary runs beside a repeat."""

from collections.abc import Sequence
from typing import Any

from seedless.evaluate.changed_answers import ChangedAnswers, compare_answers
from seedless.report.run_view import RunView


def show_seeds(runs: Sequence[RunView], seeds: Sequence[RunView]) -> dict[str, Any] | None:
    """Return what another seed changes, beside what a repeat without a seed changes.

    ``runs`` are two repeats without a seed and ``seeds`` two runs with other seeds. All are asked
    for the most probable class. None where predictions for a test set are missing.
    """
    ordinary, repeats = _compare(seeds), _compare(runs)
    if ordinary is None or repeats is None:
        return None
    scores = [(run.metrics.get("test") or {}).get("macro_auc") for run in seeds]
    return {
        "ordinary": ordinary,
        "repeats": repeats,
        "labels": [run.label for run in seeds],
        "scores": ["not defined" if one is None else f"{one:.3f}" for one in scores],
    }


def _compare(runs: Sequence[RunView]) -> ChangedAnswers | None:
    first, second = (run.predictions for run in runs)
    if first is None or second is None or not ("test" in first.splits and "test" in second.splits):
        return None
    return compare_answers(first, second)
