"""Outcomes that no one trained for: what a study says of them can be computed by hand."""

from pathlib import Path

from seedless.studies.engine.results import Results
from seedless.studies.engine.store import Outcome


def make_outcome(point, score, **classes):
    """Return a finished run of this macro AUC; a score of None is a run that failed."""
    if score is None:
        return Outcome(point, Path(point.key), None, None, "it broke")
    parts = {name: {"auc": auc, "positives": 9} for name, auc in classes.items()}
    metrics = {"test": {"macro_auc": score, "classes": parts}, "converged": score > 0.6}
    return Outcome(point, Path(point.key), metrics, f"sha256:{point.key}", None)


def make_results(grid, options, score):
    """Return the results of a grid whose runs score ``score(point)``."""
    return Results(grid, tuple(make_outcome(p, score(p)) for p in grid.points), options)
