"""Runs that failed to learn: set aside on request, counted always."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show
from seedless.stats.samples import Values, read_sample


@dataclass(frozen=True, kw_only=True)
class Converged(Answer):
    """The runs above a bar, and the places and scores of those at or below it."""

    above: float
    kept: tuple[float, ...]
    places: tuple[int, ...]
    set_aside: tuple[float, ...]


def split_converged(values: Values, above: float) -> Converged:
    """Set aside the runs that score ``above`` or less; ``places`` are the indices of those kept."""
    if not math.isfinite(above):
        raise StatsError(f"above: expected a finite score, got {above!r}")
    array = read_sample(values, least=1)
    good = array > above
    kept, failed = array[good], array[~good]
    return Converged(
        above=float(above),
        kept=tuple(map(float, kept)),
        places=tuple(map(int, np.flatnonzero(good))),
        set_aside=tuple(map(float, failed)),
        n=(len(array),),
        assumption=f"that a score of {show(above)} or less means a run that did not learn",
        sentence=f"{len(kept)} of {len(array)} runs converged (above {show(above)})"
        + (f"; set aside: {', '.join(map(show, sorted(failed)))}." if len(failed) else "."),
    )
